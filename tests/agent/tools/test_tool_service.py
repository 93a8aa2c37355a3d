"""The client offers what tools ask of a service."""

from __future__ import annotations

import inspect

import pytest

from bespeak.agent.client.service import CalledService
from bespeak.agent.tools.tool_runner import ToolService

METHODS = sorted(name for name, value in vars(ToolService).items() if inspect.isfunction(value) and name[0] != "_")


@pytest.mark.parametrize("method", METHODS)
def test_a_method_is_called_as_the_boundary_says(method: str) -> None:
    asked, offered = getattr(ToolService, method), getattr(CalledService, method)
    assert inspect.signature(asked).parameters.keys() == inspect.signature(offered).parameters.keys()
    assert inspect.iscoroutinefunction(asked) is inspect.iscoroutinefunction(offered)
