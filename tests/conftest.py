"""Fixtures every test may use. Async tests carry `pytest.mark.anyio` and run on uvloop."""

from __future__ import annotations

import gc

import pytest
from hypothesis import settings
from tests.postgres import postgres_dsn, postgres_server

__all__ = ["anyio_backend", "postgres_dsn", "postgres_server"]

# How long an example takes says more about the machine than about the code; what must be fast is measured in bench.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

# Collecting makes objects that all stay: to look for garbage among them takes a quarter of the time.
gc.disable()


def pytest_collection_finish() -> None:
    # Together these two make every object old, and leave none frozen: a server that starts counts those one by one.
    gc.freeze()
    gc.unfreeze()
    gc.enable()


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return ("asyncio", {"use_uvloop": True})
