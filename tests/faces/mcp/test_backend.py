"""Every backend offers what the MCP face asks for, with the same parameters."""

from __future__ import annotations

import inspect

import pytest

from bespeak.app.server.mcp_backend import ClientBackend
from bespeak.faces.http.dispatched import DispatchBackend
from bespeak.faces.mcp.catalog import Backend

METHODS = sorted(name for name, value in vars(Backend).items() if inspect.isfunction(value) and name[0] != "_")


@pytest.mark.parametrize("backend", [ClientBackend, DispatchBackend])
@pytest.mark.parametrize("method", METHODS)
def test_a_method_is_called_as_the_boundary_says(backend: type, method: str) -> None:
    asked, offered = inspect.signature(getattr(Backend, method)), inspect.signature(getattr(backend, method))
    assert offered.parameters.keys() == asked.parameters.keys()
    assert inspect.iscoroutinefunction(getattr(backend, method)) is inspect.iscoroutinefunction(
        getattr(Backend, method)
    )
