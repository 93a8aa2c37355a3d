"""Tools for the OpenAI Agents SDK."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from bespeak.agent.tools.tool_runner import ToolCall, ToolRunner, Wait, carry_out, framework_needed
from bespeak.documents.projections.model_tools.tools import ModelTool

if TYPE_CHECKING:
    from agents import FunctionTool


def adapt(tools: Sequence[ModelTool], runner: ToolRunner, *, approval: bool, wait: Wait | None) -> list[FunctionTool]:
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
