"""A browser, a service of common size and one of 10,000 endpoints, once for all tests of pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.chromium import browser
from tests.pages import Console, served
from tests.process import HOTEL

CROWD = Path(__file__).with_name("crowd.py")


@pytest.fixture(scope="package")
def chromium() -> Iterator[Any]:
    with browser() as started:
        yield started


@pytest.fixture(scope="package")
def hotel(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with served(HOTEL, tmp_path_factory.mktemp("hotel") / "ledger.sqlite3") as link:
        yield Console(link, chromium)


@pytest.fixture(scope="package")
def crowd(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with served(CROWD, tmp_path_factory.mktemp("crowd") / "ledger.sqlite3") as link:
        yield Console(link, chromium)
