"""The server that the official conformance suite expects: what a contract can say as endpoints, the rest as raw
handlers of the same SDK server.

The suite tests all of MCP. A contract never samples, reads roots, writes logs or sends images, so these fixtures show
that our transport, guards and server carry them; the endpoints show our own handlers.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from tests.faces.mcp.tools import MODERN, on_http
from tests.service import echo, make_endpoint

from bespeak import App, Context, Policies, Refusal
from bespeak.app.server.target import load_app
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import RegisteredFunction

if TYPE_CHECKING:
    from bespeak.faces.mcp.server import ToolServer
    from bespeak.runtime.server import Server as Runtime

Handler = Callable[[Any, Any], Awaitable[Any]]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
KEYWORDS = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
CLOSED = {"type": "object", "additionalProperties": False}
MIRRORED = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "required": ["region"],
    "additionalProperties": False,
}


# Endpoints.


def conforming_app() -> App:
    """Make the fixtures that are endpoints like any other."""
    app = App(
        "Conformance",
        server_id="conformance.example",
        operator="Tests",
        contact="ops@conformance.example",
        policies=Policies(scope_required_for_invocation=False),
    )

    @app.endpoint("QUERY", "/text", impact="informational", mcp_tool_name="test_simple_text")
    def simple() -> dict[str, str]:
        """Return a text.

        Outcome: The text is returned.
        """
        return {"text": "This is a simple text response for testing."}

    @app.endpoint(
        "QUERY",
        "/error",
        impact="informational",
        errors={"intended": "Every call."},
        mcp_tool_name="test_error_handling",
    )
    def error() -> None:
        """Return an error.

        Outcome: Nothing is returned.
        """
        raise Refusal("intended", "This tool intentionally returns an error for testing")

    @app.endpoint("QUERY", "/progress", impact="informational", mcp_tool_name="test_tool_with_progress")
    async def progress(context: Context) -> dict[str, bool]:
        """Report progress.

        Outcome: The work is done.
        """
        for done in (0, 50, 100):
            context.progress(done, 100)
            await asyncio.sleep(0.05)  # as the suite wants it, so that none is replaced by a later one
        return {"done": True}

    return app


def written(name: str, schema: Mapping[str, Any]) -> Endpoint:
    """Make an endpoint whose input schema is given."""
    found = make_endpoint("QUERY", f"/{name.replace('_', '-')}", echo)
    handler = RegisteredFunction(function="tests.service.echo", target=echo)
    return replace(found, semantic=replace(found.semantic, mcp_tool_name=name), handler=handler, input_schema=schema)


@asynccontextmanager
async def conforming() -> AsyncIterator[str]:
    """Serve all fixtures on a real port; yield the URL."""
    target = load_app(conforming_app(), Path())
    more = (written("json_schema_2020_12_tool", KEYWORDS), written("test_custom_headers", MIRRORED))
    service = replace(target.service, endpoints=(*target.service.endpoints, *more))
    async with on_http(replace(target, service=service)) as (url, keeper, mcp):
        Fixtures(mcp.tools, keeper.dispatcher.server)
        yield url


# Raw handlers.

CONTENT: Mapping[str, list[dict[str, Any]]] = {
    "test_image_content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}],
    "test_audio_content": [{"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}],
    "test_embedded_resource": [
        {
            "type": "resource",
            "resource": {
                "uri": "test://embedded-resource",
                "mimeType": "text/plain",
                "text": "This is an embedded resource content.",
            },
        }
    ],
    "test_multiple_content_types": [
        {"type": "text", "text": "Multiple content types test:"},
        {"type": "image", "data": PIXEL, "mimeType": "image/png"},
        {
            "type": "resource",
            "resource": {
                "uri": "test://mixed-content-resource",
                "mimeType": "application/json",
                "text": '{"test":"data","value":123}',
            },
        },
    ],
}
"""Tools whose result is always the same."""
NAME = {"name": {"type": "string"}}
DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
OPTIONS = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{number}", "title": f"Option {number}"} for number in (1, 2, 3)]
ENUMS = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}
CONTACT = {"username": {"type": "string"}, "email": {"type": "string"}}
FORMS = {
    "test_elicitation": CONTACT,
    "test_elicitation_sep1034_defaults": DEFAULTS,
    "test_elicitation_sep1330_enums": ENUMS,
}
"""Tools of the handshake era that ask the user, by the fields of the form."""


def form(message: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Write a request for the user's input."""
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def sample(text: str) -> dict[str, Any]:
    """Write a request for the answer of a model."""
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 100}}


ROOTS: dict[str, Any] = {"method": "roots/list", "params": {}}
ROUNDS: Mapping[str, tuple[dict[str, dict[str, Any]], ...]] = {
    "test_input_required_result_elicitation": ({"user_name": form("What is your name?", NAME)},),
    "test_input_required_result_sampling": ({"capital_question": sample("What is the capital of France?")},),
    "test_input_required_result_list_roots": ({"client_roots": ROOTS},),
    "test_input_required_result_request_state": ({"confirm": form("Please confirm", {"ok": {"type": "boolean"}})},),
    "test_input_required_result_multiple_inputs": (
        {
            "user_name": form("What is your name?", NAME),
            "greeting": sample("Generate a greeting"),
            "client_roots": ROOTS,
        },
    ),
    "test_input_required_result_multi_round": (
        {"step1": form("Step 1: What is your name?", NAME)},
        {"step2": form("Step 2: What is your favorite color?", {"color": {"type": "string"}})},
    ),
    "test_input_required_result_tampered_state": ({"confirm": form("Please confirm", {"ok": {"type": "boolean"}})},),
    "test_streaming_elicitation": ({"user_name": form("What is your name?", NAME)},),
}
"""Tools of the modern era that need input, by what they ask for in each round."""
STATELESS = {
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
}
"""Those whose only round needs no state."""
OFFERED = {"elicitation": form("What is your name?", NAME), "sampling": sample("Say a word."), "roots": ROOTS}
"""What `test_input_required_result_capabilities` asks for, by the capability that it needs."""
SILENT = (
    *("test_input_required_result_capabilities", "test_logging_tool", "test_missing_capability"),
    *("test_sampling", "test_tool_with_logging", "test_trigger_prompt_change", "test_trigger_tool_change"),
)
"""The other tools; their names say what they do."""
ARGUMENTS = {"test_sampling": "prompt", "test_elicitation": "message"}
PROMPTS: Mapping[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}
RESOURCES = {
    "test://static-text": ("text/plain", {"text": "This is the content of the static text resource."}),
    "test://static-binary": ("image/png", {"blob": PIXEL}),
    "test://watched-resource": ("text/plain", {"text": "Watched."}),
}


def text(words: str) -> dict[str, Any]:
    """Write the result of a tool that says something."""
    return {"content": [{"type": "text", "text": words}]}


class Fixtures:
    """Handlers around those of a server: what it does not know is answered here."""

    def __init__(self, tools: ToolServer, runtime: Runtime) -> None:
        import mcp_types as types

        self._tools = tools
        self._runtime = runtime
        self._states: dict[str, int] = {}
        """Round that a request state belongs to."""
        self._reads = tools.server.get_request_handler("resources/read") is not None
        """True if the server has resources of its own."""
        paged = types.PaginatedRequestParams
        self._lists("tools", paged, [_tool(name) for name in (*CONTENT, *FORMS, *ROUNDS, *SILENT)])
        self._lists("prompts", paged, [_prompt(name, given) for name, given in PROMPTS.items()])
        self._lists("resources", paged, [_resource(uri, kind) for uri, (kind, _) in RESOURCES.items()])
        template = {"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"}
        self._lists("resourceTemplates", paged, [template], "resources/templates/list")
        self._answers("tools/call", types.CallToolRequestParams, self._call_tool)
        self._answers("prompts/get", types.GetPromptRequestParams, self._get_prompt)
        self._answers("resources/read", types.ReadResourceRequestParams, self._read_resource)
        self._answers("completion/complete", types.CompleteRequestParams, _complete)
        for method in ("resources/subscribe", "resources/unsubscribe", "logging/setLevel"):
            self._answers(method, types.RequestParams, _empty)

    def _lists(self, member: str, params: Any, entries: list[dict[str, Any]], method: str = "") -> None:
        """Add entries to a list."""
        method = method or f"{member}/list"
        own = self._tools.server.get_request_handler(method)

        async def listed(context: Any, given: Any) -> Any:
            found = await own.handler(context, given) if own is not None else {member: []}
            if not isinstance(found, dict):
                found = found.model_dump(by_alias=True, mode="json", exclude_none=True)
            return _completed(context, {**found, member: [*found[member], *entries]})

        self._tools.server.add_request_handler(method, params, listed)

    def _answers(self, method: str, params: Any, answer: Handler) -> None:
        """Answer what is known here, and let the server answer the rest."""
        own = self._tools.server.get_request_handler(method)

        async def answered(context: Any, given: Any) -> Any:
            found = await answer(context, given)
            if found is None and own is not None:
                return await own.handler(context, given)
            return _completed(context, found)

        self._tools.server.add_request_handler(method, params, answered)

    async def _call_tool(self, context: Any, params: Any) -> Any:
        name = params.name
        if name in CONTENT:
            return {"content": CONTENT[name]}
        if name in ROUNDS:
            return await self._next_round(context, params)
        if name in FORMS:
            schema = {"type": "object", "properties": FORMS[name], "required": []}
            message = (params.arguments or {}).get("message", "Fill in the form.")
            answer = await context.session.elicit_form(message, schema, related_request_id=context.request_id)
            return text(f"Elicitation completed: action={answer.action}, content={answer.content}")
        if name in SILENT:
            return await getattr(self, f"_{name.removeprefix('test_')}")(context, params)
        return None

    async def _next_round(self, context: Any, params: Any) -> dict[str, Any]:
        """Ask for what is missing; an answer that was asked for counts in its own round alone."""
        await context.session.report_progress(1, 2)
        rounds, given, state = ROUNDS[params.name], params.input_responses or {}, params.request_state
        if state is not None and state not in self._states:
            raise _invalid("The request state is not one of this server.")
        number = 0 if state is None else self._states[state]
        number += all(key in given for key in rounds[number])
        if number == len(rounds):
            return text(f"state-ok: {msgspec.json.encode({key: _dumped(value) for key, value in given.items()})!r}")
        asked = {"resultType": "input_required", "inputRequests": rounds[number]}
        if params.name not in STATELESS:
            asked["requestState"] = secrets.token_urlsafe()
            self._states[asked["requestState"]] = number
        return asked

    async def _input_required_result_capabilities(self, context: Any, params: Any) -> dict[str, Any]:
        declared = _dumped(context.session.client_capabilities)
        if params.input_responses:
            return text("Thank you.")
        return {
            "resultType": "input_required",
            "inputRequests": {name: asked for name, asked in OFFERED.items() if name in declared},
            "requestState": "none",
        }

    async def _missing_capability(self, context: Any, _: Any) -> dict[str, Any]:
        import mcp_types as types
        from mcp.shared.exceptions import MCPError

        if context.session.client_capabilities.sampling is None:
            needed = {"requiredCapabilities": {"sampling": {}}}
            raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "Sampling is needed.", needed)
        return text("Sampling can be used.")

    async def _logging_tool(self, context: Any, params: Any) -> dict[str, Any]:
        return await self._tool_with_logging(context, params)

    async def _tool_with_logging(self, context: Any, _: Any) -> dict[str, Any]:
        for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await context.session.send_log_message("info", words, related_request_id=context.request_id)
            await asyncio.sleep(0)
        return text("Logged.")

    async def _sampling(self, context: Any, params: Any) -> dict[str, Any]:
        import mcp_types as types

        asked = types.TextContent(text=params.arguments["prompt"])
        answer = await context.session.create_message(
            [types.SamplingMessage(role="user", content=asked)], max_tokens=100, related_request_id=context.request_id
        )
        return text(f"LLM response: {answer.content.text}")

    async def _trigger_tool_change(self, _: Any, __: Any) -> dict[str, Any]:
        """Add an endpoint, as synthesis does."""
        name = f"added_{len(self._runtime.routes.endpoints)}"
        await self._runtime.add_endpoint(written(name, CLOSED))
        await self._tools.refresh()
        return text(f"{name} was added.")

    async def _trigger_prompt_change(self, context: Any, _: Any) -> dict[str, Any]:
        from mcp.server.subscriptions import PromptsListChanged

        await self._tools.audience.bus.publish(PromptsListChanged())
        return text("The prompts are the same, but clients are told that they changed.")

    async def _get_prompt(self, _: Any, params: Any) -> dict[str, Any] | None:
        if params.name not in PROMPTS:
            return None
        given = params.arguments or {}
        content: list[dict[str, Any]] = [{"type": "text", "text": f"Prompt with {given}"}]
        if params.name == "test_prompt_with_embedded_resource":
            resource = {"uri": given.get("resourceUri"), "mimeType": "text/plain", "text": "Embedded."}
            content = [{"type": "resource", "resource": resource}, *content]
        if params.name == "test_prompt_with_image":
            content = [{"type": "image", "data": PIXEL, "mimeType": "image/png"}, *content]
        if params.name == "test_input_required_result_prompt" and "user_context" not in (params.input_responses or {}):
            asked = form("What context should the prompt use?", {"context": {"type": "string"}})
            return {"resultType": "input_required", "inputRequests": {"user_context": asked}}
        return {"messages": [{"role": "user", "content": part} for part in content]}

    async def _read_resource(self, _: Any, params: Any) -> dict[str, Any] | None:
        uri = str(params.uri)
        kind, content = RESOURCES.get(uri, ("application/json", {}))
        if uri.startswith("test://template/"):
            found = uri.split("/")[3]
            content = {"text": msgspec.json.encode({"id": found, "templateTest": True}).decode()}
        if content:
            return {"contents": [{"uri": uri, "mimeType": kind, **content}]}
        if self._reads and not uri.startswith("test://"):
            return None
        raise _invalid("Resource not found", {"uri": uri})


def _completed(context: Any, result: dict[str, Any]) -> dict[str, Any]:
    """Add the members of the modern era, which the SDK adds to its models alone."""
    if context.protocol_version != MODERN:
        return result
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result}


async def _empty(_: Any, __: Any) -> dict[str, Any]:
    return {}


async def _complete(_: Any, __: Any) -> dict[str, Any]:
    return {"completion": {"values": [], "total": 0, "hasMore": False}}


def _tool(name: str) -> dict[str, Any]:
    argument = ARGUMENTS.get(name)
    properties = {} if argument is None else {argument: {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": f"{name} of the conformance suite.", "inputSchema": schema}


def _prompt(name: str, arguments: tuple[str, ...]) -> dict[str, Any]:
    given = [{"name": each, "description": f"The {each}.", "required": True} for each in arguments]
    return {"name": name, "description": f"{name} of the conformance suite.", "arguments": given}


def _resource(uri: str, kind: str) -> dict[str, Any]:
    return {"uri": uri, "name": uri.removeprefix("test://"), "description": "A resource.", "mimeType": kind}


def _dumped(model: Any) -> dict[str, Any]:
    found: dict[str, Any] = model.model_dump(by_alias=True, mode="json", exclude_none=True)
    return found


def _invalid(message: str, data: Any = None) -> Exception:
    import mcp_types as types
    from mcp.shared.exceptions import MCPError

    return MCPError(types.INVALID_PARAMS, message, data)
