"""Sample values for a schema: enough for the flat inputs of informational endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bespeak.contract.schema.compile import Validator, compile_schema

_FORMATS: Final[Mapping[str, str]] = {
    "uuid": "00000000-0000-4000-8000-000000000000",
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "duration": "P1D",
    "email": "probe@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
}

_MAX_DEPTH: Final = 8
_MAX_LENGTH: Final = 10_000


def sample(schema: Mapping[str, Any]) -> Any:
    """Return a minimal value that the schema accepts, or None if that is too hard to guess."""
    compiled = compile_schema(schema)
    if not isinstance(compiled, Validator):
        return None
    value = _guess(schema, 0)
    return value if compiled.is_valid(value) else None


def _guess(schema: object, depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return None
    if "const" in schema:
        return schema["const"]
    for known in ("enum", "examples"):
        values = schema.get(known)
        if isinstance(values, list) and values:
            return values[0]
    if "default" in schema:
        return schema["default"]
    kind = schema.get("type", "string")
    if isinstance(kind, list):
        kind = next((name for name in kind if name != "null"), "null")
    if kind == "object":
        return _object(schema, depth)
    if kind == "array":
        return [_guess(schema.get("items"), depth + 1) for _ in range(min(_number(schema, "minItems"), 100))]
    if kind in ("integer", "number"):
        return _within(schema)
    return {"string": _text(schema), "boolean": False}.get(kind if isinstance(kind, str) else "null")


def _object(schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
    declared, required = schema.get("properties"), schema.get("required")
    if not isinstance(declared, Mapping) or not isinstance(required, list):
        return {}
    return {name: _guess(declared.get(name), depth + 1) for name in required if isinstance(name, str)}


def _text(schema: Mapping[str, Any]) -> str:
    named = _FORMATS.get(str(schema.get("format")))
    return named if named is not None else "x" * min(max(_number(schema, "minLength"), 1), _MAX_LENGTH)


def _within(schema: Mapping[str, Any]) -> int | float:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    if isinstance(low, int | float):
        return low
    if isinstance(above, int | float):
        return above + 1
    high = schema.get("maximum")
    return high if isinstance(high, int | float) and high < 1 else 1


def _number(schema: Mapping[str, Any], name: str) -> int:
    value = schema.get(name, 0)
    return value if isinstance(value, int) and value > 0 else 0
