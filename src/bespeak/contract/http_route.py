"""The route of an endpoint on HTTP: `BOOK /room` is at `/room:book`, independent of other endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.reference import inline

_SCALARS: Final = frozenset({"string", "integer", "number", "boolean", "null"})


@dataclass(frozen=True, slots=True)
class HttpRoute:
    """The place of one endpoint on HTTP."""

    path: str
    """Path with the template's parameters, `/room/{room_id}:book`."""
    methods: tuple[str, ...]
    """HTTP methods: `GET` first if allowed; `POST` always."""

    @property
    def preferred(self) -> str:
        """Method that documents name: GET if allowed."""
        return self.methods[0]


def http_route(endpoint: Endpoint) -> HttpRoute:
    """Return the route of an endpoint. GET is for endpoints that change nothing and whose input fits a query."""
    path = f"{endpoint.path}:{endpoint.method.lower()}"
    return HttpRoute(path, ("GET", "POST") if takes_get(endpoint) else ("POST",))


def takes_get(endpoint: Endpoint) -> bool:
    """Return True if GET is allowed: the endpoint is informational and its input is flat."""
    return get_obstacle(endpoint) is None


def get_obstacle(endpoint: Endpoint) -> str | None:
    """Return the reason why GET cannot call an endpoint; None if it can."""
    if endpoint.semantic.impact != "informational":
        return "it may change something"
    schema = endpoint.input_schema
    if not schema.keys().isdisjoint(("$ref", "allOf", "anyOf", "oneOf", "if", "not", "patternProperties")):
        return "a query cannot express its input, which has alternatives"
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        return "its input is not known"
    needed = schema.get("required")
    for name, given in properties.items():
        kind = inline(given, schema)
        # There is no null in a query.
        if not _is_scalar(kind) or (isinstance(needed, list) and name in needed and _is_null(kind)):
            return f"a query cannot express {name[:80]!r}, which is not a single text, number or boolean"
    return None


def split_verb(path: str) -> tuple[str, str] | None:
    """Split an HTTP path into path and method; return None if it does not name a verb."""
    head, colon, verb = path.rpartition(":")
    if not colon or not verb.isascii() or not verb.isalpha():
        return None
    return head, verb.upper()


def _is_null(schema: Mapping[str, Any]) -> bool:
    """Return True if a scalar can only be null."""
    if "type" in schema:
        return schema["type"] in ("null", ["null"])
    if "const" in schema or "enum" in schema:
        return all(value is None for value in ([schema["const"]] if "const" in schema else schema["enum"]))
    return all(_is_null(option) for option in schema.get("anyOf") or schema.get("oneOf") or ())


def _is_scalar(schema: object) -> bool:
    if not isinstance(schema, Mapping):
        return False
    kind = schema.get("type")
    if isinstance(kind, str):
        return kind in _SCALARS
    if isinstance(kind, list):
        return bool(kind) and _SCALARS.issuperset(each for each in kind if isinstance(each, str))
    if "const" in schema or "enum" in schema:
        values = [schema["const"]] if "const" in schema else schema["enum"]
        return isinstance(values, list) and not any(isinstance(value, (list, dict)) for value in values)
    options = schema.get("anyOf") or schema.get("oneOf")
    return isinstance(options, list) and all(_is_scalar(option) for option in options)
