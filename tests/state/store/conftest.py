"""Stores for tests: the same test runs on each driver."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from tests.state.store.sealing import PlainSealer

from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Store

Opening = Callable[[], Awaitable[Store]]


@pytest.fixture(params=["sqlite", "memory", pytest.param("postgres", marks=pytest.mark.process)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the place of a store: a new file, memory, a new database."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_store"))
    return "memory" if request.param == "memory" else str(tmp_path / "store.db")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.process)])
def shared_place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a place that several processes may share, and that is looked at often."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_store"))
    return str(tmp_path / "store.db")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.process)])
def empty_place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a place without tables that several processes may share."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_dsn"))
    return str(tmp_path / "store.db")


@pytest.fixture
async def store(place: str) -> AsyncIterator[Store]:
    """Start a store with a sealer."""
    async for opened in started(place):
        yield opened


@pytest.fixture
async def first(shared_place: str) -> AsyncIterator[Store]:
    """Start a store on a shared place."""
    async for opened in started(shared_place, "first"):
        yield opened


@pytest.fixture
async def second(shared_place: str, first: Store) -> AsyncIterator[Store]:
    """Start another store on the same place, as another process would."""
    async for opened in started(shared_place, "second"):
        yield opened


async def started(place: str, stream: str = "plain") -> AsyncIterator[Store]:
    store = open_store(place)
    store.attach(PlainSealer(stream))
    try:
        await store.start()
        yield store
    finally:
        await store.close()
