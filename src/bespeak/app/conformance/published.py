"""What a manifest says about endpoints, and what may be sent to them without changing anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from bespeak.contract.grammar.path_syntax import Template, parse_template
from bespeak.contract.schema.sample import sample

_NOT_THERE: Final = "/zz-no-such-thing"


def objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """Return the objects in a list; empty if the value is not a list."""
    yield from (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def strings(value: Any) -> list[str]:
    """Return the strings in a list; empty if the value is not a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def method_names(value: Any) -> list[str]:
    """Return the names in a list of methods: the draft shows neither strings nor objects, and both occur."""
    entries = value if isinstance(value, list) else []
    names = (mapping(entry).get("name", mapping(entry).get("method", entry)) for entry in entries)
    return [name for name in names if isinstance(name, str)]


def mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def properties(endpoint: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the declared input fields of an endpoint."""
    return mapping(mapping(endpoint.get("input_schema")).get("properties"))


def path_parameters(endpoint: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the parameters in an endpoint's path."""
    parsed = parse_template(endpoint["path"])
    return parsed.parameters if isinstance(parsed, Template) else ()


def concrete_path(endpoint: Mapping[str, Any]) -> str:
    """Return a request path of an endpoint, with a sample value for each parameter."""
    path: str = endpoint["path"]
    for name in path_parameters(endpoint):
        value = sample(mapping(properties(endpoint).get(name)))
        path = path.replace(f"{{{name}}}", quote(str(value if value is not None else "1"), safe=""))
    return path


def matches(template: str, path: str) -> bool:
    """Return True if a path, literal or with parameters, covers a request path."""
    parsed = parse_template(template)
    given = path[1:].split("/")
    if not isinstance(parsed, Template) or len(parsed.segments) != len(given):
        return False
    return all(
        value if segment is None else segment == value for segment, value in zip(parsed.segments, given, strict=True)
    )


def missing_path(endpoints: Iterable[Mapping[str, Any]]) -> str:
    """Return a path that no endpoint covers, not even by a template such as /{name}."""
    templates = [endpoint["path"] for endpoint in endpoints]
    path = _NOT_THERE
    while any(matches(template, path) for template in templates):
        path += _NOT_THERE
    return path


def is_informational(endpoint: Mapping[str, Any]) -> bool:
    """Return True if the endpoint declares that it changes nothing."""
    return mapping(endpoint.get("semantic")).get("impact") == "informational"


def is_refused_when_empty(endpoint: Mapping[str, Any]) -> bool:
    """Return True if the endpoint requires a field outside its path, so that empty input is refused."""
    return bool(required_fields(endpoint))


def is_safe(endpoint: Mapping[str, Any]) -> bool:
    """Return True if input with only the probe field is harmless, even on a server that accepts it."""
    return is_informational(endpoint) or is_refused_when_empty(endpoint)


def required_fields(endpoint: Mapping[str, Any]) -> list[str]:
    """Return the required input fields outside the path."""
    required = strings(mapping(endpoint.get("input_schema")).get("required"))
    return [name for name in required if name not in path_parameters(endpoint)]


def valid_input(endpoint: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return valid input without path parameters for an endpoint that changes nothing; None for any other."""
    if not is_informational(endpoint):
        return None
    value = sample(mapping(endpoint.get("input_schema")))
    if not isinstance(value, dict):
        return None
    return {name: given for name, given in value.items() if name not in path_parameters(endpoint)}
