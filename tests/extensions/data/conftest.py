from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.data.ledger import KINDS, data_set, opened, reader

from bespeak.extensions.data.endpoints import OpenedData


@pytest.fixture(params=[pytest.param(kind, marks=pytest.mark.process if kind == "postgres" else ()) for kind in KINDS])
def kind(request: pytest.FixtureRequest) -> str:
    """Name a kind of source."""
    return str(request.param)


@pytest.fixture
def dsn(kind: str, request: pytest.FixtureRequest) -> str:
    """Return the address of a database, for the kind that needs one."""
    return str(request.getfixturevalue("postgres_dsn")) if kind == "postgres" else ""


@pytest.fixture
async def open_ledger(kind: str, dsn: str, tmp_path: Path) -> AsyncIterator[Callable[..., OpenedData]]:
    """Return a function that makes and opens the ledger in a source of this kind."""
    made: list[OpenedData] = []

    def make(at: int = 0, **more: Any) -> OpenedData:
        made.append(opened(data_set(kind, tmp_path, dsn, **more), at=at))
        return made[-1]

    yield make
    for one in made:
        await one.source.close()


@pytest.fixture
async def read(open_ledger: Callable[..., OpenedData]) -> Callable[..., Any]:
    """Return the function that reads the ledger."""
    return reader(open_ledger())
