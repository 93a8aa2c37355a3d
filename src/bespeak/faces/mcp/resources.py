"""Resources and prompts of MCP: the service's own and those of upstream servers, with handlers for both eras."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.endpoint_names import group_of
from bespeak.contract.mcp_tool import META, Tool, offered_by
from bespeak.faces.mcp.catalog import Backend, ToolCatalog
from bespeak.faces.mcp.results import KeptResults
from bespeak.runtime.methods.query import Fetch, list_resources, read_resource, resources_of


class Offers:
    """The endpoints that read prompts and resources. The texts are those of the reviewed endpoint, not the server's."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        """Index endpoints. Of several with the same name or URI, the first counts."""
        self.prompts: dict[str, Endpoint] = {}
        self.resources: dict[str, Endpoint] = {}
        for endpoint in endpoints:
            server = offered_by(endpoint)
            if server is not None and server.prompt:
                self.prompts.setdefault(server.prompt, endpoint)
            elif server is not None:
                self.resources.setdefault(server.resource, endpoint)

    def prompt_entries(self, taken: Container[str]) -> Iterator[dict[str, Any]]:
        """Yield the entries of prompts/list, without the names that are taken."""
        for name, endpoint in self.prompts.items():
            if name not in taken:
                yield {
                    "name": name,
                    "description": endpoint.description,
                    "arguments": list(_arguments(endpoint.input_schema)),
                    "_meta": {f"{META}endpoint": str(endpoint)},
                }

    @property
    def resource_entries(self) -> Mapping[str, dict[str, Any]]:
        """Entries of resources/list, by URI."""
        return {
            uri: {
                "uri": uri,
                "name": endpoint.path.rpartition("/")[2],
                "description": endpoint.description,
                "_meta": {f"{META}endpoint": str(endpoint)},
            }
            for uri, endpoint in self.resources.items()
        }


def _arguments(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    required = schema.get("required", ())
    for name, part in schema.get("properties", {}).items():
        described = {"description": part["description"]} if "description" in part else {}
        yield {"name": name, **described, "required": name in required}


TASK: Final = "task"  # name of the one argument
LONGEST_TASK: Final = 4_000
_LONGEST: Final = 12_000  # maximum characters of the text without the task
_LONGEST_LINE: Final = 400
_IMPACTS: Final[Mapping[str, str]] = {
    "informational": "These only read:",
    "reversible": "These change something that can be undone:",
    "irreversible": "These cannot be undone:",
}


@dataclass(frozen=True, slots=True, eq=False)
class NamespacePrompt:
    entry: Mapping[str, Any]  # entry of prompts/list
    text: str

    def message(self, task: str) -> str:
        """Return the text of the message; `task` may be empty."""
        return f"{self.text}\n\nTask: {task}" if task else self.text


def make_prompts(service: str, tools: Iterable[Tool]) -> dict[str, NamespacePrompt]:
    """Make a prompt for each namespace, by default the first segment of a path, in the order of the names."""
    groups: dict[str, list[Tool]] = {}
    for tool in tools:
        groups.setdefault(group_of(tool.endpoint), []).append(tool)
    return {name: _prompt(service, name, groups[name]) for name in sorted(groups)}


def _prompt(service: str, name: str, tools: list[Tool]) -> NamespacePrompt:
    entry = {
        "name": name,
        "title": f"{service}: {name}",
        "description": f"Explains what {service} does with {name}, and which of {len(tools)} tools to use for what.",
        "arguments": [{"name": TASK, "description": "What is to be done, in your words.", "required": False}],
    }
    head = f"{service} offers these tools for {name}. Choose a tool by what it does, and pass only declared arguments."
    tail = (
        "Read before you change something. If a call is refused, its result has a code and a remedy: follow it. "
        "Never repeat a call that may have changed something, unless the tool is idempotent."
    )
    lines, room = [], _LONGEST - len(head) - len(tail)
    left = len(tools)
    for line, is_tool in _lines(tools):
        room -= len(line) + 1
        if room < 0:
            lines.append(f"And {left} more: see the list of tools.")
            break
        lines.append(line)
        left -= is_tool
    return NamespacePrompt(entry, "\n".join((head, *lines, "", tail)))


def _lines(tools: list[Tool]) -> Iterator[tuple[str, bool]]:
    """Yield the lines, and whether each is a tool: the harmless ones first, deprecated ones last."""
    for impact, heading in _IMPACTS.items():
        chosen = [tool for tool in tools if _impact(tool) == impact]
        chosen.sort(key=lambda tool: tool.endpoint.deprecated is not None)
        if chosen:
            yield f"\n{heading}", False
            yield from ((_line(tool), True) for tool in chosen)


def _impact(tool: Tool) -> str:
    """Return the impact of a tool: the worst one if the service does not say it."""
    impact = tool.endpoint.semantic.impact
    return impact if impact in _IMPACTS else "irreversible"


def _line(tool: Tool) -> str:
    """Describe a tool on one line: the lines of its description, its required arguments, whether it may be repeated."""
    described = str(tool.entry["description"]).splitlines()
    required = tool.endpoint.input_schema.get("required") or []
    notes = [line if line.endswith((".", "!", "?", "]")) else f"{line}." for line in described if line]
    if isinstance(required, list) and required:
        notes.append(f"Requires {', '.join(map(str, required))}.")
    if tool.endpoint.error_names:
        notes.append(f"May fail with {', '.join(tool.endpoint.error_names)}.")
    if tool.endpoint.semantic.is_idempotent and tool.endpoint.semantic.impact != "informational":
        notes.append("It is idempotent.")
    text = f"- {tool.name}: {' '.join(notes)}"
    return text if len(text) <= _LONGEST_LINE else f"{text[: _LONGEST_LINE - 3]}..."


_logger = logging.getLogger(__name__)
_NOT_FOUND: Final = -32002  # code for an unknown resource before 2026-07-28, which uses that of invalid parameters
_LONGEST_ERROR: Final = 1_000
Context = ServerRequestContext[Any, Any]
Page = types.PaginatedRequestParams | None
ResultT = TypeVar("ResultT")


@dataclass(eq=False)
class ResourceReader:
    _backend: Backend
    _catalog: Callable[[], Awaitable[ToolCatalog]]
    _meet: Callable[[Context], None]  # called for every client that reads a list
    _kept: KeptResults | None  # results that were too long
    _described: ToolCatalog | None = None
    _prompts: dict[str, NamespacePrompt] = field(default_factory=dict)
    _offers: Offers = field(default_factory=lambda: Offers(()))

    @property
    def uris(self) -> Iterable[str]:
        return resources_of(self._backend.server_id)

    async def list_resources(self, context: Context, _: Page) -> types.ListResourcesResult:
        self._meet(context)
        entries = await _attempt("The resources", list_resources(self._backend.server_id, self._fetch(context)))
        await _attempt("The resources", self._read_catalog())
        entries += [entry for uri, entry in self._offers.resource_entries.items() if uri not in self.uris]
        return types.ListResourcesResult(resources=[types.Resource.model_validate(entry) for entry in entries])

    async def list_templates(self, context: Context, _: Page) -> types.ListResourceTemplatesResult:
        """Answer resources/templates/list: there are none."""
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        found = None if self._kept is None else self._kept.read(uri, self._backend.caller(context.request))
        if found is None:
            found = await _attempt("The resource", read_resource(self._backend.server_id, uri, self._fetch(context)))
        if found is None:
            await _attempt("The resource", self._read_catalog())
            if (offer := self._offers.resources.get(uri)) is not None:
                contents = await self._call(context, offer, {})
                return types.ReadResourceResult.model_validate({"contents": contents.get("contents", [])})
            code = types.INVALID_PARAMS if context.protocol_version in MODERN_PROTOCOL_VERSIONS else _NOT_FOUND
            raise MCPError(code, f"Resource not found: {uri[:200]}", {"uri": uri[:2000]})
        return types.ReadResourceResult(contents=[types.TextResourceContents.model_validate(found)])

    async def list_prompts(self, context: Context, _: Page) -> types.ListPromptsResult:
        self._meet(context)
        await _attempt("The prompts", self._read_catalog())
        entries = [*(one.entry for one in self._prompts.values()), *self._offers.prompt_entries(self._prompts)]
        return types.ListPromptsResult(prompts=[types.Prompt.model_validate(entry) for entry in entries])

    async def get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        await _attempt("The prompt", self._read_catalog())
        prompt, offer = self._prompts.get(params.name), self._offers.prompts.get(params.name)
        if prompt is None and offer is not None:
            return types.GetPromptResult.model_validate(await self._call(context, offer, params.arguments or {}))
        if prompt is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name[:80]}")
        arguments = params.arguments or {}
        unknown = [name for name in arguments if name != TASK]
        if unknown:
            raise MCPError(types.INVALID_PARAMS, f"Unknown argument: {unknown[0][:80]}. There is only {TASK}.")
        task = arguments.get(TASK, "").strip()
        if len(task) > LONGEST_TASK:
            raise MCPError(types.INVALID_PARAMS, f"{TASK} may have at most {LONGEST_TASK} characters.")
        text = types.TextContent(text=prompt.message(task))
        return types.GetPromptResult(
            description=str(prompt.entry["description"]), messages=[types.PromptMessage(role="user", content=text)]
        )

    def _fetch(self, context: Context) -> Fetch:
        return partial(self._backend.document, request=context.request)

    async def _read_catalog(self) -> None:
        catalog = await self._catalog()
        if catalog is not self._described:
            self._described = catalog
            self._prompts = make_prompts(self._backend.name, catalog.tools.values())
            self._offers = Offers(catalog.offers)

    async def _call(self, context: Context, offer: Endpoint, arguments: Mapping[str, str]) -> Any:
        """Read a prompt or a resource of an upstream, through the gates of its endpoint."""
        outcome = await _attempt("What the upstream offers", self._backend.call(offer, arguments, {}, context.request))
        if outcome.ok:
            return outcome.output
        message = str(outcome.error.get("message", "It cannot be read."))
        raise MCPError(types.INVALID_PARAMS, message[:_LONGEST_ERROR], {"code": outcome.error.get("code")})


async def _attempt(what: str, made: Awaitable[ResultT]) -> ResultT:
    """Await something that reads the service. The SDK would send the text of an exception to earlier clients."""
    try:
        return await made
    except Exception as error:
        _logger.error("%s cannot be read", what, exc_info=error)
        raise MCPError(types.INTERNAL_ERROR, f"{what} cannot be read; try again later.") from None
