"""Schemas of objects that take no field they do not declare, and the keyword that closes one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bespeak.contract.schema.subschemas import COMPOSING

_COMPOSING: Final = COMPOSING | {"dependentSchemas"}
"""Beside these `additionalProperties: false` would forbid what they declare."""


def closing_keyword(schema: Mapping[str, Any]) -> str:
    """The keyword that, when it is false, closes a schema and forbids nothing that it declares."""
    return "unevaluatedProperties" if _COMPOSING & schema.keys() else "additionalProperties"


def is_closed(schema: Mapping[str, Any]) -> bool:
    """Whether a schema refuses undeclared fields. An `additionalProperties` of its own counts as declaring them."""
    if "additionalProperties" in schema:
        return schema["additionalProperties"] is False
    return schema.get("unevaluatedProperties") is False
