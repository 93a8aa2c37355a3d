"""Tools for Pydantic AI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from bespeak.agent.tools.tool_runner import ToolCall, ToolRunner, Wait, carry_out, framework_needed
from bespeak.documents.projections.model_tools.tools import ModelTool

if TYPE_CHECKING:
    from pydantic_ai import Tool


def adapt(tools: Sequence[ModelTool], runner: ToolRunner, *, approval: bool, wait: Wait | None) -> list[Tool[Any]]:
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
