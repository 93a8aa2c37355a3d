"""Patterns that split an identifier into its words. They load no English, so that servers can use them."""

from __future__ import annotations

import re
from typing import Final

HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")  # border between the words of `roomType`
WORD_BORDER: Final = re.compile(rf"{HUMP.pattern}|(?<=[A-Z])(?=[A-Z][a-z])")  # also between those of `HTTPStatus`
PIECE: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")  # one word of `roomType`
