"""Schemas without what holds anyway, for readers who pay for every word."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from bespeak.contract.schema.compile import DIALECT

_DATED: Final = re.compile(
    rb'"(?:\$(?!schema"|ref")[a-zA-Z]+|dependentRequired|dependentSchemas|maxContains|minContains|prefixItems'
    rb'|unevaluatedItems|unevaluatedProperties)":'
)
"""Keywords that earlier dialects do not have; a member with such a name does no harm."""


def terse(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a schema without an empty `required`, titles that repeat the name of a definition, and the usual dialect.

    A schema that reads otherwise in an earlier dialect keeps it.
    """
    made = dict(schema)
    if made.get("$schema") in (DIALECT, f"{DIALECT}#") and not _DATED.search(msgspec.json.encode(schema)):
        del made["$schema"]
    if made.get("required") == []:
        del made["required"]
    if isinstance(made.get("$defs"), Mapping):
        made["$defs"] = {name: _untitled(name, part) for name, part in made["$defs"].items()}
    return made


def _untitled(name: str, part: Any) -> Any:
    if isinstance(part, Mapping) and part.get("title") == name:
        return {keyword: value for keyword, value in part.items() if keyword != "title"}
    return part
