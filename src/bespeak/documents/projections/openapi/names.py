"""Names of schemas in an OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_NO_COMPONENT: Final = re.compile(r"[^A-Za-z0-9._-]+")


def component_name(text: str) -> str:
    """Convert a text to a component key, which holds only letters, digits, `.`, `-` and `_`."""
    return _NO_COMPONENT.sub("_", text).strip("_") or "schema"


def type_name(operation_id: str) -> str:
    """Convert an operation id to the first part of a type name: `BookRoom`."""
    return "".join(word[0].upper() + word[1:] for word in operation_id.split("_") if word)


def unique_in(taken: Mapping[str, object], name: str) -> str:
    """Return the name, with a number appended if it is taken."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}{number}"
    return free
