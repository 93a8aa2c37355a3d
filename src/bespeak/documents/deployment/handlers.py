"""Handler blocks: three kinds, each with its own keys (AGTP-API 12)."""

from __future__ import annotations

from dataclasses import dataclass
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
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.reading.rules import MISSING_KEY, WRONG_VALUE
from bespeak.text.reading.settings import read_settings
from bespeak.text.reading.table import Table
from bespeak.text.source.tree import Location

_KINDS: Final[dict[str, type[RegisteredFunction | Composition | ExternalService]]] = {
    RegisteredFunction.type: RegisteredFunction,
    Composition.type: Composition,
    ExternalService.type: ExternalService,
}
_UNSUPPORTED: Final = {
    ("blocking", RegisteredFunction.type): (
        "`blocking` is no longer a setting: every `def` runs in a thread",
        "Remove it. Write `inline = true` for a quick `def` that may run in the event loop.",
    ),
    ("module", RegisteredFunction.type): (
        "`module` beside `function` is not supported (AGTP-API 12.2)",
        'Write one dotted path: function = "module.function".',
    ),
    **{
        (key, Composition.type): (
            f"`{key}`: steps inside an endpoint are not supported (AGTP-API 12.1)",
            "Move them into agtp-recipes.toml and name the recipe here.",
        )
        for key in ("steps", "plan")
    },
}


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
    function = binding.function if isinstance(binding, RegisteredFunction) else ""
    if function and not block.has("module") and not is_dotted_path(function):
        key = "function" if block.has("function") else "reference"
        message = f"`{key}` must be the dotted path of a function (AGTP-API 12.2); got {brief(function)}"
        block.error(WRONG_VALUE, key, message)
    return binding


_FORM = 'Write [handlers."BOOK /reservation"]: the method, a space, the path.'


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerEntry:
    """One handler and the endpoint it is for."""

    method: str
    path: str
    handler: HandlerBinding
    pointer: str
    location: Location


def read_handlers(root: Table, key: str) -> tuple[HandlerEntry, ...]:
    """Read every valid entry. Whether the document has that endpoint is checked later."""
    block = root.table(key)
    entries: list[HandlerEntry] = []
    for name in block.data if block else ():
        assert block is not None
        inner = block.table(name)
        if inner is None:
            continue
        method, _, path = name.partition(" ")
        path = path.strip()
        if not path.startswith("/"):
            block.findings.error(WRONG_VALUE, f"{brief(name)} does not name an endpoint", inner.at, _FORM)
            continue
        if (handler := read_handler(inner)) is not None:
            method, place = method.upper(), block.findings.locate(inner.at)
            entries.append(HandlerEntry(method=method, path=path, handler=handler, pointer=inner.at, location=place))
    return tuple(entries)
