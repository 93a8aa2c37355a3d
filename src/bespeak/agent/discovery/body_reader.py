"""The body of an answer, read no further than allowed: in bytes as they come, and in bytes once decoded."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import httpx

_GZIP: Final = 16 + zlib.MAX_WBITS


class BodyError(Exception):
    """The body cannot be had; `kind` is `size` or `encoding`."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        super().__init__(message)


async def read_body(response: httpx.Response, most: int, *, cut: bool = False) -> bytes:
    """The decoded body of an answer of at most so many bytes; with `cut` its beginning. Raises BodyError.

    Nothing but the identity encoding is asked for. A server that sends gzip nevertheless is read; what is decoded
    counts, so that a small body cannot become a large one.
    """
    encoding = response.headers.get("content-encoding", "identity").strip().lower() or "identity"
    if encoding not in ("identity", "gzip", "x-gzip"):
        raise BodyError("encoding", f"the body is encoded as {encoding[:40]!r}, which was not asked for")
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
                raise BodyError("encoding", "the body is not the gzip it is said to be") from error
        if len(body) > most:
            if cut:
                return bytes(body[:most])
            raise BodyError("size", f"it has more than {most} bytes")
    if decoder is not None and not decoder.eof:
        raise BodyError("encoding", "the gzip of the body ends before its end")
    return bytes(body)
