"""RDF nodes as plain data, and their text in Turtle and JSON-LD."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec


class Iri(msgspec.Struct, frozen=True):
    """A resource, by its prefixed name or its whole IRI."""

    name: str


Value = Iri | str | int | bool | dict[str, Any] | list[Any]
"""A resource, a literal, a blank node with its own properties, or an RDF list."""

Node = Mapping[str, Value | tuple[Value, ...]]
"""Values by prefixed property; `a` is the type. A tuple holds several values."""

_INDENT: Final = "    "


def write_turtle(prefixes: Mapping[str, str], nodes: Mapping[str, Node]) -> str:
    """Write nodes as Turtle, in the given order."""
    head = "".join(f"@prefix {prefix}: <{iri}> .\n" for prefix, iri in prefixes.items())
    return head + "".join(f"\n{_resource(name)} {_properties(node, 1)} .\n" for name, node in nodes.items())


def write_jsonld(prefixes: Mapping[str, str], nodes: Mapping[str, Node]) -> str:
    """Write nodes as JSON-LD with an inline context, in the given order."""
    graph = [{"@id": name, **_members(node)} for name, node in nodes.items()]
    return json.dumps({"@context": dict(prefixes), "@graph": graph}, indent=2, ensure_ascii=False) + "\n"


def _properties(node: Node, depth: int) -> str:
    """Write a property on each line; several values on one."""
    return f" ;\n{_INDENT * depth}".join(
        f"{name} {', '.join(_object(one, depth) for one in _values(value))}" for name, value in node.items()
    )


def _object(value: Value, depth: int) -> str:
    match value:
        case Iri(name):
            return _resource(name)
        case str():
            return _text(value)
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case dict():
            inside = _INDENT * (depth + 1)
            return f"[\n{inside}{_properties(value, depth + 1)}\n{_INDENT * depth}]"
        case list():
            return f"( {' '.join(_object(one, depth) for one in value)} )"


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"""{escaped}"""' if "\n" in escaped else f'"{escaped}"'


def _resource(name: str) -> str:
    return f"<{name}>" if "://" in name else name


def _values(value: Value | tuple[Value, ...]) -> tuple[Value, ...]:
    return value if isinstance(value, tuple) else (value,)


def _members(node: Node) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in node.items():
        if name == "a":
            types = [one.name for one in _values(value) if isinstance(one, Iri)]
            found["@type"] = types if len(types) > 1 else types[0]
        else:
            written = [_json(one) for one in _values(value)]
            found[name] = written if len(written) > 1 else written[0]
    return found


def _json(value: Value) -> Any:
    match value:
        case Iri(name):
            return {"@id": name}
        case dict():
            return _members(value)
        case list():
            return {"@list": [_json(one) for one in value]}
        case _:
            return value
