"""Stores for tests of messages."""

from __future__ import annotations

from tests.state.store.conftest import shared_place

__all__ = ["shared_place"]
