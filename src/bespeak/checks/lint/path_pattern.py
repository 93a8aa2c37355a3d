"""Path patterns as in ignore files: `*` matches within a folder, `**` across folders."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache


def matches(pattern: str, path: str) -> bool:
    """Return True if a pattern matches a path, both with forward slashes and relative to the same folder.

    A pattern without a slash matches files and folders of that name anywhere; a folder includes its content.
    """
    wanted, parts = _compiled(pattern), path.split("/")
    # One row of the dynamic programming table: prefixes of the path that the pattern so far matches.
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
    """Compile a pattern for each path segment; None stands for `**`."""
    anchored = "/" in pattern.rstrip("/")
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if not anchored:
        parts.insert(0, "**")
    return tuple(None if part == "**" else re.compile(translate(part)) for part in parts)
