"""The handler block of an endpoint file: three kinds, each with its own keys (AGTP-API 12)."""

from __future__ import annotations

from typing import Final

from bespeak.contract.handler import (
    Composition,
    ExternalService,
    HandlerBinding,
    McpTool,
    RegisteredFunction,
    is_dotted_path,
)
from bespeak.documents.rules import UNSUPPORTED_HANDLER
from bespeak.text.diagnostics.brief import brief
from bespeak.text.reading.rules import MISSING_KEY, WRONG_VALUE
from bespeak.text.reading.settings import read_settings
from bespeak.text.reading.table import Table

_KINDS: Final[dict[str, type[RegisteredFunction | Composition | ExternalService]]] = {
    RegisteredFunction.type: RegisteredFunction,
    Composition.type: Composition,
    ExternalService.type: ExternalService,
}
_UNSUPPORTED: Final = {
    ("module", RegisteredFunction.type): (
        "`module` beside `function` is not supported (AGTP-API 12.2)",
        'Write one dotted path: function = "module.function".',
    ),
    ("steps", Composition.type): (
        "`steps`: steps inside an endpoint are not supported (AGTP-API 12.1)",
        "Move them into agtp-recipes.toml and name the recipe here.",
    ),
    ("plan", Composition.type): (
        "`plan`: steps inside an endpoint are not supported (AGTP-API 12.1)",
        "Move them into agtp-recipes.toml and name the recipe here.",
    ),
}
"""Keys that a kind of handler must not have, with message and advice."""


def read_handler(block: Table) -> HandlerBinding | None:
    """Read the binding if its kind is known. Registration checks whether its target can be reached."""
    kind = block.choice("type", tuple(_KINDS))
    if kind is None:
        if not block.has("type"):
            block.missing("type", f"One of {', '.join(_KINDS)}.")
        return None
    for (key, of), (message, advice) in _UNSUPPORTED.items():
        if of == kind and block.has(key):
            block.findings.error(UNSUPPORTED_HANDLER, message, block.pointer(key), advice)
    if kind == McpTool.type and block.has("mcp"):
        tool: McpTool = read_settings(McpTool, block, known=("type",))
        server = block.value("mcp")
        if not isinstance(server, dict):
            return None  # it is reported, and leaves nothing to call
        if not server.keys() & {"tool", "prompt", "resource"}:
            advice = "The name of the tool, as the server has it; or `prompt` or `resource`."
            block.findings.error(MISSING_KEY, "`tool` is missing", block.pointer("mcp"), advice)
        return tool
    binding = read_settings(_KINDS[kind], block, known=("type",))
    if isinstance(binding, RegisteredFunction) and binding.function and not block.has("module"):
        _check_function(block, binding.function)
    return binding


def _check_function(block: Table, function: str) -> None:
    if not is_dotted_path(function):
        key = "function" if block.has("function") else "reference"
        message = f"`{key}` must be the dotted path of a function (AGTP-API 12.2); got {brief(function)}"
        block.findings.error(WRONG_VALUE, message, block.pointer(key))
