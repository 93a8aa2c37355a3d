"""Closed object schemas, which accept only declared fields, and the keyword that closes one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bespeak.contract.schema.subschemas import COMPOSING

_COMPOSING: Final = COMPOSING | {"dependentSchemas"}
"""Keywords whose declared fields `additionalProperties: false` would forbid."""


def closing_keyword(schema: Mapping[str, Any]) -> str:
    """Return the keyword that closes a schema, if set to false, without forbidding declared fields."""
    return "unevaluatedProperties" if _COMPOSING & schema.keys() else "additionalProperties"


def is_closed(schema: Mapping[str, Any]) -> bool:
    """Return True if a schema refuses undeclared fields. An `additionalProperties` schema counts as declaring them."""
    if "additionalProperties" in schema:
        return schema["additionalProperties"] is False
    return schema.get("unevaluatedProperties") is False


def closed(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Close a schema that does not say whether other fields are allowed: one that nobody reads is a mistake."""
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return schema
    return {**schema, closing_keyword(schema): False}
