"""A file written in one step: whoever reads it sees the old content or the new one."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import Final

UNFINISHED: Final = ".bespeak-"
"""How the names of files begin that are being written."""


def replace_text(path: Path, text: str, *, create: bool = False) -> None:
    """Put a new text in the place of the old one. Its mode stays, and a link stays a link. Raises as replace_bytes.

    A file that is not there is only made with `create`: one that has gone meanwhile was removed by somebody.
    """
    place = path.resolve()
    mode = 0o666 & ~file_mask() if create and not place.exists() else stat.S_IMODE(place.stat().st_mode)
    replace_bytes(place, text.encode(), mode)


def replace_bytes(path: Path, content: bytes, mode: int) -> None:
    """Put new content in the place of the old, if there is any. Raises OSError; then the old content is there."""
    descriptor, name = tempfile.mkstemp(prefix=UNFINISHED, dir=path.parent)
    beside = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        beside.chmod(mode)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def file_mask() -> int:
    """What new files are not allowed. The mask can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
