"""Servers with a stub handler, for tests of connections."""

from tests.stub_server import full_backlog, handler, serve, unused_port

__all__ = ["full_backlog", "handler", "serve", "unused_port"]
