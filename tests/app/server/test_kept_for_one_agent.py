"""What an agent has proposed for itself: every face shows it to this agent, and nothing of it to others."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from tests.extensions.negotiation.negotiating import FIND, OTHER, REFUNDS, given, lodgings, negotiating, recipe
from tests.faces.mcp.tools import modern
from tests.service import AGENT
from tests.stateful import StatefulBench

from bespeak.app.server.http_face import make_face
from bespeak.app.server.http_pages import Publishing
from bespeak.app.server.serving import WebApplications
from bespeak.app.server.settings import HttpAssembly
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_settings import A2aSettings, McpSettings
from bespeak.extensions.semantics.settings import SemanticSettings
from bespeak.faces.http.server import HttpServer
from bespeak.faces.limits import Timeouts
from bespeak.state.identity.settings import AuthSettings

pytestmark = pytest.mark.anyio

WORD = "qxlodging"  # word that only the proposals have: in paths, texts and names of parameters
COUNT = 6
PAGES = (
    "/",
    "/llms.txt",
    "/openapi.json",
    "/.well-known/ai",
    "/.well-known/agis.json",
    "/.well-known/agent-card.json",
    "/.well-known/agent.json",
    "/.well-known/ai-catalog.json",
    "/mcp/server-card",
    "/capabilities.jsonld",
)
SCOPE = {"authority_scope": "mcp:tools:execute"}
MEDIA = "application/vnd.mcp.tools+json"
IDS = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|(?:prop|syn)-[0-9a-f]+|\d{4}-\d\d-\d\dT[0-9:.]+Z|(?<=rejections.:)\d+")
"""What differs between two answers that say the same."""

RECIPES = tuple(recipe(f"/{WORD}s-{number}", ("FIND", "/rooms"), city=given(WORD)) for number in range(COUNT))


def wish(number: int) -> dict[str, Any]:
    body = lodgings(path=f"/{WORD}s-{number}", description=f"Finds a {WORD} in a town.")
    schema = {"type": "string", "description": f"Town of the {WORD}."}
    body["input_schema"] = {**body["input_schema"], "properties": {WORD: schema}, "required": [WORD]}
    body["semantic"] = {**body["semantic"], "intent": f"Find a {WORD}.", "outcome": f"Each {WORD} is returned."}
    return body


@asynccontextmanager
async def on_the_web(bench: StatefulBench) -> AsyncIterator[httpx.AsyncClient]:
    """Serve the service on a real port, with MCP and A2A; its list of tools has room for its own endpoints only."""
    web, mcp = HttpSettings(url="http://rooms.test"), McpSettings(enabled=True, tools_listed=2)
    a2a, dispatcher = A2aSettings(enabled=True), bench.bench.dispatcher
    beside = WebApplications(HttpAssembly(dispatcher, web, AuthSettings(), loopback=True), mcp, a2a)
    await beside.start()
    face = make_face(dispatcher, web, publishing=Publishing(mcp=True, a2a=a2a))
    server = HttpServer(face, streamed=beside.places, timeouts=Timeouts(drain=5.0))
    [(_, port)] = await server.start("127.0.0.1", 0)
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as client:
            yield client
    finally:
        await server.drain()
        await beside.stop()


async def over_agtp(bench: StatefulBench, agent: str | None) -> dict[str, str]:
    """Return everything that a caller is told over AGTP, by what was asked."""
    path, tool = f"/{WORD}s-0", f"find_{WORD}s_0"
    questions: dict[str, tuple[str, str, Any, dict[str, str]]] = {
        "manifest": ("DISCOVER", "/", {"target": "manifest"}, {}),
        "inventory": ("DISCOVER", "/methods", None, {}),
        "agis": ("DISCOVER", "/", None, {"accept": "application/agis"}),
        "candidates": ("DISCOVER", "/", {"criteria": f"find a {WORD}", "max_results": 50}, {}),
        "capabilities": ("DESCRIBE", "/", {"capability_domains": "tools,methods"}, {}),
        "resource": ("QUERY", "/", {"intent": "x", "mcp_resource_uri": "bespeak://test.example/manifest"}, {}),
        "tools": ("EXECUTE", "/", {"action": "mcp.tools.list", "payload_type": MEDIA}, SCOPE),
        "tool": ("EXECUTE", "/", {"action": tool, "parameters": {WORD: "Rome"}}, SCOPE),
        "nearly a tool": ("EXECUTE", "/", {"action": f"{tool}0", "parameters": {}}, SCOPE),
        "call": ("FIND", path, {WORD: "Rome"}, {}),
        "other verb": ("LIST", path, {}, {}),
        "near path": ("FIND", f"{path}0", {}, {}),
        "similar": (
            "PROPOSE",
            "/",
            {**wish(0), "path": "/elsewhere", "output_schema": {"type": "array"}},
            {},
        ),
        "plan": ("PLAN", "/", {"goal": f"find a {WORD}"}, {}),
        "release": ("SUSPEND", "/", {"synthesis_id": "syn-" + "0" * 32}, {}),
    }
    told = {}
    for name, (method, target, body, headers) in questions.items():
        reply = await bench.send(method, target, body, agent=agent, **headers)
        told[name] = f"{reply.status} {reply.response.body.decode()} {reply.header('AGTP-API-Version')}"
        told[name] += f" {reply.header('ETag')} {reply.header('Supported-Methods')}"
    return told


async def over_http(client: httpx.AsyncClient, agent: str | None) -> dict[str, str]:
    """Return everything that a caller is told over HTTP, MCP and A2A, by what was asked."""
    headers = {} if agent is None else {"Agent-ID": agent}
    path, told = f"/{WORD}s-0", {}
    for page in PAGES:
        reply = await client.get(page, headers=headers)
        assert reply.status_code == 200, page
        told[page] = f"{reply.text} {reply.headers.get('etag')}"
    for method, target in (("OPTIONS", path), ("GET", path), ("POST", f"{path}:find"), ("OPTIONS", f"{path}:find")):
        reply = await client.request(method, target, headers=headers, json={WORD: "Rome"} if method == "POST" else None)
        told[f"{method} {target}"] = f"{reply.status_code} {reply.text} {reply.headers.get('allow')}"
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "tools/list": ("tools/list", {}),
        "tools/call": ("tools/call", {"name": f"find_{WORD}s_0", "arguments": {WORD: "Rome"}}),
        "search": ("tools/call", {"name": "find_capability", "arguments": {"query": f"find a {WORD}"}}),
        "searched": (
            "tools/call",
            {"name": "call_capability", "arguments": {"name": f"find_{WORD}s_0", "arguments": {WORD: "Rome"}}},
        ),
        "prompts": ("prompts/list", {}),
        "mcp manifest": ("resources/read", {"uri": "bespeak://test.example/manifest"}),
    }
    for name, (method, params) in calls.items():
        sent, body = modern(method, **params)
        if method == "resources/read":
            sent["Mcp-Name"] = params["uri"]
        reply = await client.post("/mcp", json=body, headers={**sent, **headers})
        told[name] = f"{reply.status_code} {reply.text}"
    for name, part in {
        "skill": {"data": {"skill": f"find_{WORD}s_0", "input": {WORD: "Rome"}}},
        "hint": {"text": WORD},
    }.items():
        message = {"messageId": f"{name}-{agent}", "role": "ROLE_USER", "parts": [part]}
        body = {"jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": {"message": message}}
        reply = await client.post("/a2a", json=body, headers={"A2A-Version": "1.0", **headers})
        told[f"a2a {name}"] = f"{reply.status_code} {reply.text}"
    return told


def same(told: dict[str, str]) -> dict[str, str]:
    return {name: IDS.sub("*", text) for name, text in told.items()}


SHOWN = {  # answers in which the owner finds what it has proposed
    *("manifest", "inventory", "agis", "candidates", "capabilities", "tools", "tool", "call"),
    *("search", "searched", "tools/call", "mcp manifest", "a2a skill", "a2a hint", "resource"),
}


@pytest.mark.requirement("API-10.5-2")
@pytest.mark.parametrize("open_to_all", [True, False])
async def test_nothing_of_it_reaches_another_caller_on_any_face(open_to_all: bool) -> None:
    policies = {"anonymous_discovery": open_to_all}
    service = {"semantic": SemanticSettings()}
    async with (
        negotiating(FIND, recipes=(*RECIPES, REFUNDS), persistent=True, policies=policies, service=service) as bench,
        on_the_web(bench) as client,
    ):

        async def listen(agent: str | None) -> dict[str, str]:
            web = await over_http(client, agent) if open_to_all else {}
            return same({**await over_agtp(bench, agent), **web})

        strangers = (OTHER, None)
        before = {agent: await listen(agent) for agent in strangers}
        for number in range(COUNT):
            made = await bench.send("PROPOSE", "/", {"endpoint": wish(number), "persistent": True})
            assert (made.status, made.json["persistent"]) == (263, True)
        for agent in strangers:
            after = await listen(agent)
            assert {name for name in after if after[name] != before[agent][name]} == set()
        own = await listen(AGENT)
        signs = ("Rome", f"/{WORD}s-0", f"find_{WORD}s_0")
        missing = {name for name in SHOWN & own.keys() if not any(sign in own[name] for sign in signs)}
        assert missing == set()
