"""Members of semantic payloads by class, derived from the table of the core ontology."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from bespeak.contract.ontology.core import CLASSES, PROPERTIES, Value

Node = dict[str, Any]
"""A node as read: a list of values by member name; `@id` is its IRI if it has one, `@type` its types.

A value is an IRI, a literal, another node, or `Unfit`.
"""


class Unfit(msgspec.Struct, frozen=True):
    """Value of another kind than the member has."""

    value: Any


class Member(msgspec.Struct, frozen=True):
    """A member of a class."""

    name: str
    value: Value
    range: str
    """Class of the nodes that are its values."""


LABEL: Final = "label"
"""Member for names, which the context maps to rdfs:label."""

MEMBERS: Final[Mapping[str, Mapping[str, Member]]] = {
    name: {one.name: Member(one.name, one.value, one.range) for one in PROPERTIES.values() if name in one.domains}
    | {LABEL: Member(LABEL, "literal", "")}
    for name in CLASSES
}
"""Members by class and name."""
