"""Frameworks that are not installed, and calls across threads."""

from __future__ import annotations

import sys

import pytest
from tests.agent.tools.test_tool_list import app

import bespeak
from bespeak.agent.tools.tool_runner import framework_needed
from bespeak.errors import ConfigError

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("style", "module", "package"),
    [
        ("langchain", "langchain_core", "langchain-core"),
        ("openai-agents", "agents", "openai-agents"),
        ("pydantic-ai", "pydantic_ai", "pydantic-ai-slim"),
    ],
)
async def test_a_missing_package_is_named(
    style: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)  # type: ignore[arg-type] # how Python marks a missing module
    async with bespeak.connect(app) as service:
        with pytest.raises(ConfigError, match=f"need the package {package}: pip install {package}"):
            await service.tools(style)


def test_another_missing_module_is_not_blamed_on_the_framework() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module"), framework_needed("agents", "openai-agents"):
        import no_such_module  # type: ignore[import-not-found] # noqa: F401 - it does not exist
