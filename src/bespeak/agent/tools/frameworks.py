"""Tools for frameworks: LangChain with LangGraph, the OpenAI Agents SDK, and Pydantic AI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from bespeak.agent.tools.tool_runner import ToolCall, ToolResult, ToolRunner, Wait, carry_out, framework_needed
from bespeak.documents.projections.model_tools.tools import ModelTool
from bespeak.errors import ConfigError

if TYPE_CHECKING:
    from agents import FunctionTool
    from langchain_core.tools import BaseTool
    from pydantic_ai import Tool

_CALL_ID: Final[ContextVar[str | None]] = ContextVar("call_id", default=None)
"""Id of the call that is carried out: LangChain does not pass it on to tools with a JSON Schema."""


def adapt_langchain(
    tools: Sequence[ModelTool], runner: ToolRunner, *, approval: bool, wait: Wait | None
) -> list[BaseTool]:
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


def adapt_openai_agents(
    tools: Sequence[ModelTool], runner: ToolRunner, *, approval: bool, wait: Wait | None
) -> list[FunctionTool]:
    """Make the tools. With `approval`, a run is interrupted before a call that cannot be undone."""
    with framework_needed("agents", "openai-agents"):
        from agents import FunctionTool  # noqa: PLC0415 - only if it is asked for

    def invocation(tool: ModelTool, *, agreed: bool) -> Callable[[Any, str], Awaitable[str]]:
        async def invoke(context: Any, arguments: str) -> str:
            call = ToolCall("openai-responses", tool.name, arguments or "{}", context.tool_call_id)
            return (await carry_out(runner, call, wait, agreed=agreed)).text

        return invoke

    made = []
    for tool in tools:
        approved = approval and runner.must_ask(tool)
        made.append(
            FunctionTool(
                name=tool.name,
                description=tool.description,
                params_json_schema=tool.conversion.schema,
                # The framework calls a tool that needs approval only after a person has approved the call.
                on_invoke_tool=invocation(tool, agreed=approved),
                strict_json_schema=tool.conversion.strict,
                needs_approval=approved,
            )
        )
    return made


def adapt_pydantic_ai(
    tools: Sequence[ModelTool], runner: ToolRunner, *, approval: bool, wait: Wait | None
) -> list[Tool[Any]]:
    """Make the tools. With `approval`, a run ends with the request to approve a call that cannot be undone."""
    with framework_needed("pydantic_ai", "pydantic-ai-slim"):
        from pydantic_ai import ApprovalRequired, Tool  # noqa: PLC0415 - only if it is asked for

    def invocation(tool: ModelTool) -> Callable[..., Awaitable[Any]]:
        needs_approval = approval and runner.must_ask(tool)

        async def invoke(context: Any, /, **arguments: Any) -> Any:
            if needs_approval and not context.tool_call_approved:
                raise ApprovalRequired
            call = ToolCall("plain", tool.name, arguments, context.tool_call_id)
            result = await carry_out(runner, call, wait, agreed=needs_approval)
            return result.output if result.error is None else {"error": result.error}

        return invoke

    return [
        Tool.from_schema(
            invocation(tool),
            name=tool.name,
            description=tool.description,
            json_schema=tool.conversion.schema,
            takes_ctx=True,
        )
        for tool in tools
    ]
