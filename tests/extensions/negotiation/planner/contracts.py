"""Contracts in one line each, for tables of tests: `LIST /orders status?=open|closed -> orders[].id orders[].total:n`.

Names are texts unless a letter follows: `i` integer, `n` number, `b` boolean, `d` date, `t` date and time, `e` e-mail,
`u` UUID, `o` any object, `*` any value. `[]` after the letter is a list of them, `=a|b` lists the values allowed,
`?` after a name makes it optional, `==v` is a default. An output of `[].x` is a list at
the top level. `~` before the verb is reversible, `!` irreversible.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from bespeak.contract.endpoint import Endpoint, Semantic
from bespeak.contract.handler import OpaqueHandler

_TYPES: dict[str, dict[str, Any]] = {
    "": {"type": "string"},
    "s": {"type": "string"},
    "i": {"type": "integer"},
    "n": {"type": "number"},
    "b": {"type": "boolean"},
    "d": {"type": "string", "format": "date"},
    "t": {"type": "string", "format": "date-time"},
    "e": {"type": "string", "format": "email"},
    "u": {"type": "string", "format": "uuid"},
    "o": {"type": "object"},
    "*": {},
}
_FIELD = re.compile(
    r"(?P<path>[^?:=]+)(?P<optional>\?)?(?::(?P<type>[a-z*]?)(?P<list>\[\])?)?(?:(?P<sign>==?)(?P<values>.+))?"
)
_IMPACTS = {"~": "reversible", "!": "irreversible"}


def contract(line: str, *, scopes: tuple[str, ...] = (), internal: bool = False) -> Endpoint:
    """Make the endpoint of a line."""
    head, _, outputs = line.partition("->")
    method, path, *inputs = head.split()
    impact = _IMPACTS.get(method[0], "informational")
    names = [name for name in re.findall(r"\{(\w+)\}", path) if not any(re.match(rf"{name}\b", one) for one in inputs)]
    return Endpoint(
        method=method.lstrip("~!"),
        path=path,
        description=line,
        semantic=Semantic(
            intent="Do the thing.",
            actor="agent",
            outcome="The thing is done.",
            confidence=0.9,
            impact=impact,
            is_idempotent=True,
        ),
        input_schema=schema([*names, *inputs]) | {"additionalProperties": False},
        output_schema=schema(outputs.split()),
        handler=OpaqueHandler(type="registered_function"),
        required_scopes=scopes,
        internal=internal,
        data_class=path.split("/")[2] if path.startswith("/data/") else None,
    )


def contracts(text: str) -> list[Endpoint]:
    """Make the endpoints of lines; a line that begins with a space continues the one before it, `#` begins a remark."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(" ") and lines:
            lines[-1] += line
        elif line.strip() and not line.startswith("#"):
            lines.append(line)
    return [contract(line) for line in lines]


def schema(fields: Iterable[str]) -> dict[str, Any]:
    """Make the schema of an object with these fields."""
    root: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
    fields = list(fields)
    if any(text.startswith("[].") for text in fields):
        return {"type": "array", "items": schema(text.removeprefix("[].") for text in fields)}
    for text in fields:
        found = _FIELD.fullmatch(text)
        assert found is not None, text
        leaf = dict(_TYPES[found["type"] or ""])
        if found["sign"] == "==":
            value = found["values"]
            leaf["default"] = int(value) if value.isdigit() else value
        elif found["sign"]:
            leaf["enum"] = found["values"].split("|")
        if found["list"]:
            leaf = {"type": "array", "items": leaf}
        _place(root, found["path"].split("."), leaf, required=not found["optional"] and found["sign"] != "==")
    return root


def _place(node: dict[str, Any], names: list[str], leaf: dict[str, Any], *, required: bool) -> None:
    name, rest = names[0], names[1:]
    plain = name.removesuffix("[]")
    if required and plain not in node["required"]:
        node["required"].append(plain)
    if not rest:
        node["properties"][plain] = {"type": "array", "items": leaf} if name.endswith("[]") else leaf
        return
    empty: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
    inner = node["properties"].setdefault(plain, {"type": "array", "items": empty} if name.endswith("[]") else empty)
    _place(inner.get("items", inner), rest, leaf, required=required)
