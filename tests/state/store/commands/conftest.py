"""Stores for commands: a file and memory differ in nothing that a command could notice."""

from __future__ import annotations

import pytest


@pytest.fixture
def place(shared_place: str) -> str:
    """Return the place of a store: a new file, a new database."""
    return shared_place
