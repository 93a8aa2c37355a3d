"""Atomic replacement of a file: a reader sees the old content or the new, never a mixture."""

from __future__ import annotations

import codecs
import os
import stat
import tempfile
from pathlib import Path
from typing import Final

UNFINISHED: Final = ".bespeak-"
"""Prefix of temporary files."""


def replace_text(path: Path, text: str, *, create: bool = False) -> None:
    """Replace the text of a file. Its mode and byte order mark are kept, and a link stays a link.

    Raises like `replace_bytes`. A missing file is only created with `create`: if it disappeared meanwhile, it was
    removed on purpose.
    """
    place = path.resolve()
    if create and not place.exists():
        replace_bytes(place, text.encode(), 0o666 & ~file_mask())
        return
    with place.open("rb") as file:
        mark = file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8
    content = text.encode().removeprefix(codecs.BOM_UTF8)
    replace_bytes(place, (codecs.BOM_UTF8 if mark else b"") + content, stat.S_IMODE(place.stat().st_mode))


def replace_bytes(path: Path, content: bytes, mode: int) -> None:
    """Replace the content of a file, or create it. Raises OSError and leaves the old content if that fails."""
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
    """Return the process's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
