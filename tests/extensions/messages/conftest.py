"""Stores and servers for messages and deliveries."""

from __future__ import annotations

from tests.state.store.conftest import first, place, second, shared_place, store
from tests.stub_server import handler, serve, unused_port

__all__ = ["first", "handler", "place", "second", "serve", "shared_place", "store", "unused_port"]
