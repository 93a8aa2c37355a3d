"""The data files beside the code, as text."""

from __future__ import annotations

import pkgutil
import zlib
from typing import Final

_GZIP: Final = 31
"""What zlib calls a gzip file with a window of any size. The module gzip, for streams, takes longer to import."""


def read_data(name: str) -> str:
    """The text of a packed file that comes with bespeak."""
    packed = pkgutil.get_data("bespeak.text.language", f"data/{name}")
    assert packed is not None
    return zlib.decompress(packed, wbits=_GZIP).decode("ascii")
