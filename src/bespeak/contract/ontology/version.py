"""Versions of ontologies and profiles: explicit and comparable (IoA 5.3)."""

from __future__ import annotations

import re
from typing import Final, Literal

import msgspec

from bespeak.text.diagnostics.brief import brief

_NUMBERS: Final = re.compile(r"[vV]?([0-9]{1,9}(?:\.[0-9]{1,9}){0,3})")
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")

Compatibility = Literal["compatible", "older", "other_major", "incomparable"]
"""Whether a provider's version serves a request: it does, its minor version is too low, its major version differs, or
the two versions do not compare."""


class Version(msgspec.Struct, frozen=True, order=True):
    """A version that compares with others of its scheme."""

    dated: bool
    """True for a date, which does not compare with numbers."""
    parts: tuple[int, ...]
    """Numbers, the major first, without trailing zeros behind the minor."""

    @property
    def major(self) -> int:
        """Number within which versions are backwards compatible; the year of a date."""
        return self.parts[0]


def parse_version(text: str | float) -> Version | None:
    """Parse numbers with points, `2.1`, or a date, `2026-03-01`; return None for what does not compare."""
    text = str(text) if not isinstance(text, bool) else ""
    if found := _NUMBERS.fullmatch(text):
        parts = [int(part) for part in found[1].split(".")]
        parts += [0] * (2 - len(parts))
        while len(parts) > 2 and not parts[-1]:
            parts.pop()
        return Version(dated=False, parts=tuple(parts))
    if found := _DATE.fullmatch(text):
        return Version(dated=True, parts=tuple(int(part) for part in found.groups()))
    return None


def compare_versions(provided: str | float, requested: str | float) -> Compatibility:
    """Compare a provider's version with a requested one; patch numbers do not matter.

    The draft does not say when versions are compatible (7.1). Backwards compatibility within a major version (5.3)
    means: the same major, and a minor that is not lower than the requested one.
    """
    if str(provided) == str(requested):
        return "compatible"
    ours, theirs = parse_version(provided), parse_version(requested)
    if ours is None or theirs is None or ours.dated != theirs.dated:
        return "incomparable"
    if ours.major != theirs.major:
        return "other_major"
    # Dates of one year are ordered by month and day; of numbers, only the minor counts.
    kept = 3 if ours.dated else 2
    return "compatible" if ours.parts[:kept] >= theirs.parts[:kept] else "older"


def succession_fault(version: str, latest: str) -> str | None:
    """Return why a version cannot follow the latest one, or None. A downgrade or an unknown order is refused."""
    new, old = parse_version(version), parse_version(latest)
    if new is None or old is None or new.dated != old.dated:
        return f"version {brief(version)} does not compare with {brief(latest)}; use numbers with points, or dates"
    if new < old:
        return f"version {brief(version)} is older than {brief(latest)}; register a newer version"
    return None
