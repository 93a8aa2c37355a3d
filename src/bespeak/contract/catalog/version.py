"""Catalog versions: MAJOR.MINOR.PATCH and the choice of a common one (AGTP-API 4.1, 4.6)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_VERSION = re.compile(r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})(?:[-+][0-9A-Za-z.+-]{1,64})?")


class Version(NamedTuple):
    """A parsed version, ordered. Labels after `-` or `+` do not count."""

    major: int
    minor: int
    patch: int


def parse_version(text: str) -> Version | None:
    """Parse a version; return None if it is not valid."""
    match = _VERSION.fullmatch(text)
    return Version(int(match[1]), int(match[2]), int(match[3])) if match else None


def common_version(preferred: str, mine: Iterable[str], theirs: Iterable[str]) -> str | None:
    """Return the version to use: the preferred one if both support it, else the highest common one, else None."""
    shared = set(mine) & set(theirs)
    if preferred in shared:
        return preferred
    ranked = [(parsed, text) for text in shared if (parsed := parse_version(text)) is not None]
    return max(ranked)[1] if ranked else None
