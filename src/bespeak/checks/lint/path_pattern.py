"""Patterns of paths as ignore files have them: `*` stays in a folder, `**` goes through folders."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache


def matches(pattern: str, path: str) -> bool:
    """Whether a pattern means a path, both with forward slashes and relative to the same folder.

    A pattern without a slash means a file or folder of that name anywhere; a folder means everything in it.
    """
    wanted, parts = _compiled(pattern), path.split("/")
    # One row of the usual table: which lengths of the path the pattern so far can have eaten.
    reached = {0}
    for part in wanted:
        if part is None:
            reached = set(range(min(reached), len(parts) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(parts) and part.match(parts[at])}
        if not reached:
            return False
    return True


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> tuple[re.Pattern[str] | None, ...]:
    """A pattern for each folder; None for `**`, which means any number of folders."""
    anchored = "/" in pattern.rstrip("/")
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if not anchored:
        parts.insert(0, "**")
    return tuple(None if part == "**" else re.compile(translate(part)) for part in parts)
