"""What MCP clients read beside tools: resources and prompts. Handlers for the SDK's server, for both eras."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from bespeak.contract.endpoint import Endpoint
from bespeak.faces.mcp.backend import Backend
from bespeak.faces.mcp.catalog import Catalog
from bespeak.faces.mcp.kept_result import KeptResults
from bespeak.faces.mcp.offers import Offers
from bespeak.faces.mcp.prompts import LONGEST_TASK, TASK, Prompt, make_prompts
from bespeak.runtime.mcp_resources import Fetch, list_resources, read_resource, resources_of

_logger = logging.getLogger(__name__)

_NOT_FOUND: Final = -32002
"""Code for an unknown resource before the revision 2026-07-28, which uses that of invalid parameters."""
_LONGEST_ERROR: Final = 1_000

Context = ServerRequestContext[Any, Any]
ResultT = TypeVar("ResultT")


class Reading:
    """Serves the resources and prompts of a backend."""

    def __init__(
        self,
        backend: Backend,
        catalog: Callable[[], Awaitable[Catalog]],
        meet: Callable[[Context], None],
        kept: KeptResults | None,
    ) -> None:
        """Serve a backend. `catalog` reads what it offers, and `meet` is called for every client that reads a list.

        `kept` are results that were too long.
        """
        self._kept = kept
        self._backend = backend
        self._catalog = catalog
        self._meet = meet
        self._described: Catalog | None = None
        self._prompts: dict[str, Prompt] = {}
        self._offers = Offers(())

    @property
    def uris(self) -> Iterable[str]:
        """URIs of the resources."""
        return resources_of(self._backend.server_id)

    async def list_resources(
        self, context: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Answer resources/list."""
        self._meet(context)
        reading = list_resources(self._backend.server_id, self._fetch(context))
        entries = await _attempt("The resources", reading)
        await _attempt("The resources", self._read_catalog())
        entries += [entry for uri, entry in self._offers.resource_entries.items() if uri not in self.uris]
        return types.ListResourcesResult(resources=[types.Resource.model_validate(entry) for entry in entries])

    async def list_templates(
        self, context: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Answer resources/templates/list: there are none."""
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Answer resources/read."""
        uri = str(params.uri)
        found = None if self._kept is None else self._kept.read(uri, self._backend.caller(context.request))
        if found is None:
            reading = read_resource(self._backend.server_id, uri, self._fetch(context))
            found = await _attempt("The resource", reading)
        if found is None:
            await _attempt("The resource", self._read_catalog())
            offer = self._offers.resources.get(uri)
            if offer is not None:
                contents = await self._call(context, offer, {})
                return types.ReadResourceResult.model_validate({"contents": contents.get("contents", [])})
            code = types.INVALID_PARAMS if context.protocol_version in MODERN_PROTOCOL_VERSIONS else _NOT_FOUND
            raise MCPError(code, f"Resource not found: {uri[:200]}", {"uri": uri[:2000]})
        return types.ReadResourceResult(contents=[types.TextResourceContents.model_validate(found)])

    async def list_prompts(self, context: Context, _: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        """Answer prompts/list."""
        self._meet(context)
        await _attempt("The prompts", self._read_catalog())
        entries = [*(one.entry for one in self._prompts.values()), *self._offers.prompt_entries(self._prompts)]
        return types.ListPromptsResult(prompts=[types.Prompt.model_validate(entry) for entry in entries])

    async def get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """Answer prompts/get."""
        await _attempt("The prompt", self._read_catalog())
        prompt, offer = self._prompts.get(params.name), self._offers.prompts.get(params.name)
        if prompt is None and offer is not None:
            told = await self._call(context, offer, params.arguments or {})
            return types.GetPromptResult.model_validate(told)
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
        reading = self._backend.call(offer, arguments, {}, context.request)
        outcome = await _attempt("What the upstream offers", reading)
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
