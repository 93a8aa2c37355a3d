"""Servers with a stub handler, for tests of connections, and the ways of MCP clients."""

import pytest
from tests.faces.mcp.tools import ERAS
from tests.stub_server import full_backlog, handler, serve, unused_port

__all__ = ["full_backlog", "handler", "serve", "unused_port"]


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    """Return the way in which the client opens its connection."""
    return str(request.param)


@pytest.fixture(params=["stdio", "http"])
def way(request: pytest.FixtureRequest) -> str:
    """Return the server that a client is connected to by `opened`."""
    return str(request.param)
