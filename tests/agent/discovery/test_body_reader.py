"""Bodies, read no further than allowed."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import AsyncIterator

import httpx
import pytest

from bespeak.agent.discovery.fetcher import BodyError, read_body

pytestmark = pytest.mark.anyio


def answer(*chunks: bytes, **headers: str) -> httpx.Response:
    async def stream() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return httpx.Response(
        200, headers={name.replace("_", "-"): text for name, text in headers.items()}, content=stream()
    )


async def test_the_pieces_are_put_together() -> None:
    assert await read_body(answer(b"a", b"", b"bc"), 3) == b"abc"


async def test_one_byte_too_many_is_too_many() -> None:
    with pytest.raises(BodyError, match="more than 3 bytes") as caught:
        await read_body(answer(b"ab", b"cd"), 3)
    assert caught.value.kind == "size"


async def test_the_beginning_is_enough_where_it_is_cut() -> None:
    assert await read_body(answer(b"ab", b"cd", content_length="4"), 3, cut=True) == b"abc"


async def test_an_announced_length_is_believed_before_anything_is_read() -> None:
    with pytest.raises(BodyError, match="it has 400 bytes"):
        await read_body(answer(content_length="400"), 3)


async def test_a_bomb_takes_no_more_memory_than_the_limit() -> None:
    bomb = gzip.compress(bytes(20_000_000))
    tracemalloc.start()
    with pytest.raises(BodyError, match="more than 1000 bytes"):
        await read_body(answer(bomb, content_encoding="gzip"), 1000)
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


async def test_gzip_comes_in_pieces() -> None:
    packed = gzip.compress(b"hello")
    assert (
        await read_body(answer(*(packed[i : i + 1] for i in range(len(packed))), content_encoding="gzip"), 5)
        == b"hello"
    )
