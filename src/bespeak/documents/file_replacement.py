"""A file written in one step: whoever reads it sees the old text or the new one, and its mode stays."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


def replace_text(path: Path, text: str, *, create: bool = False) -> None:
    """Put a new text in the place of the old one. A link stays a link. Raises OSError; then the old text is there.

    A file that is not there is only made with `create`: one that has gone meanwhile was removed by somebody.
    """
    place = path.resolve()
    mode = _usual_mode() if create and not place.exists() else stat.S_IMODE(place.stat().st_mode)
    descriptor, name = tempfile.mkstemp(prefix=".bespeak-", dir=place.parent)
    beside = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        beside.chmod(mode)
        beside.replace(place)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _usual_mode() -> int:
    """The mode of a new file. The mask can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask
