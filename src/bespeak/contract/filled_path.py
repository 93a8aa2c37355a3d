"""Paths with values in place of their parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from bespeak.protocol.fault import Fault

_PARAMETER: Final = re.compile(r"\{([A-Za-z0-9_]+)\}")
_NO_SEGMENT: Final = ("", ".", "..")
"""Values that a path cannot carry as a segment: a server would read another path."""


def fill_path(path: str, given: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None] | Fault:
    """Replace each `{name}` of a path by that field of an input; return the path and the rest of the input, if any."""
    left = dict(given)
    for name in dict.fromkeys(_PARAMETER.findall(path)):
        value = left.pop(name, "")
        try:
            text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            segment = quote(text, safe="")
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            return Fault(f"The {name} is not JSON: {error}.")
        if text in _NO_SEGMENT:
            return Fault(f"The path {path} needs a value for {name!r}; got {text!r}.")
        path = path.replace(f"{{{name}}}", segment)
    return path, left or None
