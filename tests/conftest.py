"""Fixtures every test may use. Async tests carry `pytest.mark.anyio` and run on uvloop."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return ("asyncio", {"use_uvloop": True})
