"""Numbers of data parts. A2A carries them as doubles, which have no integers and lose the digits of large ones."""

from __future__ import annotations

import re
from typing import Any, Final

from bespeak.contract.schema.compile import Validator
from bespeak.text.source.pointer import is_index, unescaped, value_at

LARGEST: Final = 2**53
"""Largest integer up to which a double holds every one."""
_DIGITS: Final = re.compile(r"-?[0-9]{16,40}")


def restore_integers(value: Any) -> Any:
    """Turn whole numbers into integers: a client that has only doubles sends 3.0 for 3."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= LARGEST else value
    if isinstance(value, dict):
        return {name: restore_integers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [restore_integers(item) for item in value]
    return value


def restore_large(arguments: dict[str, Any], validator: Validator) -> None:
    """Turn texts into integers where the schema asks for one: a client that has only doubles sends large ones so."""
    for violation in validator.violations(arguments):
        if violation.keyword != "type" or '"integer"' not in violation.message.rpartition("is not of type")[2]:
            continue
        value = value_at(arguments, violation.pointer)
        if isinstance(value, str) and _DIGITS.fullmatch(value):
            above, _, name = violation.pointer.rpartition("/")
            holder = value_at(arguments, above)
            if isinstance(holder, dict):
                holder[unescaped(name)] = int(value)
            elif isinstance(holder, list) and is_index(name, holder):
                holder[int(name)] = int(value)


def write_large(value: Any) -> Any:
    """Turn integers that a double cannot hold into texts."""
    if isinstance(value, int):
        return value if abs(value) <= LARGEST else str(value)
    if isinstance(value, dict):
        return {name: write_large(item) for name, item in value.items()}
    if isinstance(value, list):
        return [write_large(item) for item in value]
    return value
