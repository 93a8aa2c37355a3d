"""A file replaced in one step: whoever reads it sees the old text or the new one, and its mode stays."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


def replace_text(path: Path, text: str) -> None:
    """Put a new text in the place of the old one. A link stays a link. Raises OSError; then the old text is there."""
    place = path.resolve()
    descriptor, name = tempfile.mkstemp(prefix=".bespeak-", dir=place.parent)
    beside = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        beside.chmod(stat.S_IMODE(place.stat().st_mode))
        beside.replace(place)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
