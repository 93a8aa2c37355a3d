"""A client before and in its block."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from bespeak.agent.client.connect import async_block, block


@block
@contextmanager
def opening(name: str) -> Iterator[str]:
    yield name.upper()


@async_block
@asynccontextmanager
async def opening_later(name: str) -> AsyncIterator[str]:
    yield name.upper()


def test_a_block_gives_the_client() -> None:
    with opening("hotel") as client:
        assert client == "HOTEL"


@pytest.mark.anyio
async def test_an_async_block_gives_the_client() -> None:
    async with opening_later("hotel") as client:
        assert client == "HOTEL"


def test_before_the_block_there_is_nothing_to_call_and_the_error_says_what_to_write() -> None:
    with pytest.raises(AttributeError, match=r"write `with bespeak\.connect_sync"):
        opening("hotel").call  # noqa: B018 - the attribute is the point
    with pytest.raises(AttributeError, match=r"write `async with bespeak\.connect"):
        opening_later("hotel").call  # noqa: B018
    assert not hasattr(opening("hotel"), "call")
