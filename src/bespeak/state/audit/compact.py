"""The compact JWS of records and checkpoints, without verification."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from bespeak.protocol.fault import Fault

if TYPE_CHECKING:
    from bespeak.state.identity.jws import Jws

_LONGEST: Final = 1 << 22
"""Maximum characters of a record or checkpoint; a checkpoint of the most streams has a tenth of that."""


def jws_id(jws: str) -> str:
    """Return the id of a JWS: SHA-256 of its text, in hexadecimal (core 10.3)."""
    return sha256(jws.encode("utf-8", "surrogatepass")).hexdigest()


def parse_compact(jws: str) -> Jws | None:
    """Read a JWS, signed or not; return None if the text is not one. Its algorithm is judged with its signature."""
    from bespeak.state.identity.jws import parse_jws  # noqa: PLC0415 - loads cryptography, which most servers do without

    read = parse_jws(jws, longest=_LONGEST, algorithms=None)
    return None if isinstance(read, Fault) else read
