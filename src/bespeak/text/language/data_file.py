"""Access to the data files beside the code, as text."""

from __future__ import annotations

import pkgutil
import zlib
from typing import Final

_GZIP: Final = 31
"""zlib's code for a gzip file with any window size. The gzip module, made for streams, takes longer to import."""


def read_data(name: str) -> str:
    """Read a compressed data file of this package."""
    packed = pkgutil.get_data("bespeak.text.language", f"data/{name}")
    assert packed is not None
    return zlib.decompress(packed, wbits=_GZIP).decode("ascii")
