"""A browser, and for all tests of pages once a service of common size and one of 10,000 endpoints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.chromium import browser
from tests.pages import Console, served
from tests.process import HOTEL

CROWD = Path(__file__).with_name("crowd.py")


@pytest.fixture
def chromium() -> Iterator[Any]:
    # For one test at a time: while Playwright runs, no other test of this process could run an event loop.
    with browser() as started:
        yield started


@pytest.fixture(scope="package")
def hotel_link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(HOTEL, tmp_path_factory.mktemp("hotel") / "ledger.sqlite3") as link:
        yield link


@pytest.fixture
def hotel(chromium: Any, hotel_link: str) -> Console:
    return Console(hotel_link, chromium)


@pytest.fixture(scope="package")
def crowd_link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(CROWD, tmp_path_factory.mktemp("crowd") / "ledger.sqlite3") as link:
        yield link


@pytest.fixture
def crowd(chromium: Any, crowd_link: str) -> Console:
    return Console(crowd_link, chromium)
