"""Reader of response bodies with a limit on received and on decoded bytes."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import httpx

_GZIP: Final = 16 + zlib.MAX_WBITS


class BodyError(Exception):
    """Body that cannot be read; `kind` is `size` or `encoding`."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        super().__init__(message)


async def read_body(response: httpx.Response, most: int, *, cut: bool = False) -> bytes:
    """Read and decode a body of at most `most` bytes; with `cut`, truncate a longer one. Raises BodyError.

    Requests ask for the identity encoding only, but a gzip body is accepted. The limit applies to decoded bytes, so a
    small body cannot expand into a large one.
    """
    encoding = response.headers.get("content-encoding", "identity").strip().lower() or "identity"
    if encoding not in ("identity", "gzip", "x-gzip"):
        raise BodyError("encoding", f"the body is encoded as {encoding[:40]!r}, which was not requested")
    announced = response.headers.get("content-length", "")
    if not cut and announced.isascii() and announced.isdigit() and int(announced[:18]) > most:
        raise BodyError("size", f"it has {announced[:18]} bytes, more than {most}")
    decoder = zlib.decompressobj(_GZIP) if encoding != "identity" else None
    body = bytearray()
    async for chunk in response.aiter_raw():
        if decoder is None:
            body += chunk
        else:
            try:
                body += decoder.decompress(chunk, most + 1 - len(body))
            except zlib.error as error:
                raise BodyError("encoding", "the body is not valid gzip") from error
        if len(body) > most:
            if cut:
                return bytes(body[:most])
            raise BodyError("size", f"it has more than {most} bytes")
    if decoder is not None and not decoder.eof:
        raise BodyError("encoding", "the gzip body is truncated")
    return bytes(body)
