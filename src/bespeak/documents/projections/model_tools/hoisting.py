"""References of a schema to any of its places, as references to definitions with plain names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from bespeak.contract.schema.subschemas import MAX_DEPTH, nodes
from bespeak.contract.schema.transplant import Parts, transplant
from bespeak.documents.projections.model_tools.document import PLACE, Document, Node
from bespeak.text.source.pointer import pointer, value_at

_LONGEST: Final = 40
_OTHER: Final = re.compile(r"[^A-Za-z0-9_]+")


class TooComplexError(Exception):
    """A schema is too deep or too large to be converted."""


def hoist(schema: Mapping[str, Any]) -> Document:
    """Read a schema. Anchors and nested documents are resolved; a reference that leads nowhere accepts everything.

    Raises TooComplexError if the schema is nested too deeply.
    """
    if any(len(at) > MAX_DEPTH for at, _ in nodes(dict(schema))):
        raise TooComplexError
    names: dict[Parts, str] = {}
    taken: set[str] = set()

    def refer(parts: Parts) -> str:
        if parts not in names:
            names[parts] = _name(parts, taken)
            taken.add(names[parts])
        return PLACE + names[parts]

    moved = transplant(schema, refer)
    definitions: dict[str, Node] = {}
    for parts, name in names.items():
        target = value_at(moved, pointer(parts), {})
        definitions[name] = target if isinstance(target, dict) else {} if target is True else {"not": {}}
    return Document(moved, definitions)


def _name(parts: Parts, taken: set[str]) -> str:
    """Name a definition after the last part of its place."""
    plain = _OTHER.sub("_", parts[-1] if parts else "root").strip("_")[:_LONGEST] or "schema"
    number, name = 1, plain
    while name in taken:
        number += 1
        name = f"{plain}_{number}"
    return name
