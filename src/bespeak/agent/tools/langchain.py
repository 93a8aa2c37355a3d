"""Tools for LangChain and LangGraph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from bespeak.agent.tools.tool_runner import ToolCall, ToolResult, ToolRunner, Wait, carry_out, framework_needed
from bespeak.documents.projections.model_tools.tools import ModelTool
from bespeak.errors import ConfigError

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

_CALL_ID: Final[ContextVar[str | None]] = ContextVar("call_id", default=None)
"""Id of the call that is carried out: LangChain does not pass it on to tools with a JSON Schema."""


def adapt(tools: Sequence[ModelTool], runner: ToolRunner, *, approval: bool, wait: Wait | None) -> list[BaseTool]:
    """Make the tools. A refusal is a ToolMessage with the status `error`."""
    with framework_needed("langchain_core", "langchain-core"):
        from langchain_core.tools import BaseTool, ToolException  # noqa: PLC0415 - only if it is asked for

    def content(result: ToolResult) -> str:
        if result.error is not None:
            raise ToolException(result.text)
        return result.text

    class ServiceTool(BaseTool):
        def run(self, *given: Any, tool_call_id: str | None = None, **options: Any) -> Any:
            with _identified(tool_call_id):
                return super().run(*given, tool_call_id=tool_call_id, **options)

        async def arun(self, *given: Any, tool_call_id: str | None = None, **options: Any) -> Any:
            with _identified(tool_call_id):
                return await super().arun(*given, tool_call_id=tool_call_id, **options)

        def _run(self, /, **arguments: Any) -> str:
            if wait is None:
                raise ConfigError("This client is asynchronous: use ainvoke, or connect with bespeak.connect_sync.")
            return content(wait(runner.result(ToolCall("plain", self.name, arguments, _CALL_ID.get()))))

        async def _arun(self, /, **arguments: Any) -> str:
            return content(await carry_out(runner, ToolCall("plain", self.name, arguments, _CALL_ID.get()), wait))

    return [
        ServiceTool(
            name=tool.name, description=tool.description, args_schema=tool.conversion.schema, handle_tool_error=True
        )
        for tool in tools
    ]


@contextmanager
def _identified(call_id: str | None) -> Iterator[None]:
    token = _CALL_ID.set(call_id)
    try:
        yield
    finally:
        _CALL_ID.reset(token)
