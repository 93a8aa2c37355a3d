"""The names that schemas go by in an OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_NO_COMPONENT: Final = re.compile(r"[^A-Za-z0-9._-]+")


def component_name(text: str) -> str:
    """A text as the key of a component, which holds letters, digits, `.`, `-` and `_` only."""
    return _NO_COMPONENT.sub("_", text).strip("_") or "schema"


def type_name(operation_id: str) -> str:
    """The id of an operation as the beginning of a type's name: `BookRoom`."""
    return "".join(word[0].upper() + word[1:] for word in operation_id.split("_") if word)


def unique_in(taken: Mapping[str, object], name: str) -> str:
    """The name, or the name with a number behind it where it is taken."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}{number}"
    return free
