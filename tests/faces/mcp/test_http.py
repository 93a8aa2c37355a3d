"""MCP over HTTP: both eras with the SDK's client on a real port, credentials, guards and bad input."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from tests.cases import rows
from tests.faces.mcp.issuer import Issuer
from tests.faces.mcp.tools import INITIALIZE, LEGACY, Rooms, agree, connected_to, error_in, modern
from tests.service import AGENT, echo, make_endpoint

from bespeak import Policies
from bespeak.contract.handler import RegisteredFunction
from bespeak.documents.deployment.server_settings import McpSettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.protocol.wire.messages import DEFAULT_LIMITS
from bespeak.state.audit.record import payload_of
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.store.commands.audit import LatestAudit

pytestmark = pytest.mark.anyio
HALLS = replace(
    make_endpoint("FIND", "/halls", echo), handler=RegisteredFunction(function="tests.service.echo", target=echo)
)
READER = {"agent_id": AGENT, "authority_scope": "rooms:read"}
WRITER = {"agent_id": AGENT, "authority_scope": "rooms:read, rooms:write"}
SENT = {name.replace("_", "-"): value for name, value in READER.items()}
METADATA = 'Bearer resource_metadata="https://rooms.example/.well-known/oauth-protected-resource/agents/mcp"'
PLAIN = json.dumps(modern("tools/call", name="query_rooms", arguments={"beds": 2})[1])


async def post(url: str, method: str = "tools/list", headers: dict[str, str] | None = None, **params: Any) -> Any:
    """Send one request of the modern era."""
    sent, body = modern(method, **params)
    async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
        return await client.post(url, json=body, headers={**sent, **(headers or {})})


async def test_tools_are_listed_called_and_asked_about(era: str) -> None:
    rooms = Rooms()
    async with rooms.on_http() as (url, _), connected_to(url, era, agree, **WRITER) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool("query_rooms", {"beds": 2})
        booked = await client.call_tool("book_rooms", {"room_id": "12"})
        taken = error_in(await client.call_tool("book_rooms", {"room_id": "12"}))
    assert names[0] == "book_rooms"
    assert "inspect_ledger" not in names
    assert found.structured_content == {"rooms": ["12"]}
    assert booked.structured_content == {"reservation_id": "r1"}
    assert (taken["code"], taken["details"]) == ("room_unavailable", {"next_free": "14"})


async def test_calls_have_the_authority_of_their_request_and_say_what_the_operator_can_do(era: str) -> None:
    rooms = Rooms()
    async with rooms.on_http() as (url, _), connected_to(url, era, agree, **READER) as client:
        assert (await client.call_tool("query_rooms", {})).structured_content is not None
        error = error_in(await client.call_tool("book_rooms", {"room_id": "12"}))
    assert (error["code"], error["missing_scopes"]) == ("scope-violation", ["rooms:write"])
    assert rooms.booked == []
    async with Rooms().on_http() as (url, _), connected_to(url, era, **WRITER) as client:
        error = error_in(await client.call_tool("book_rooms", {"room_id": "12"}))
    assert f"`bespeak cases accept {error['confirmation_id']} TARGET`" in error["remedy"]


async def test_many_tools_are_searched(era: str) -> None:
    rooms = Rooms()
    document = ServerDocument(mcp=McpSettings(tools_listed=2))
    booking = {"name": "book_rooms", "arguments": {"room_id": "12"}}
    async with rooms.on_http(document) as (url, _), connected_to(url, era, agree, **WRITER) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool("find_capability", {"query": "reserve a room", "limit": 1})
        booked = await client.call_tool("call_capability", booking)
        instructions = client.instructions or (await post(url, "server/discover")).json()["result"]["instructions"]
    assert names == ["call_capability", "find_capability"]
    assert (found.structured_content or {})["capabilities"][0]["name"] == "book_rooms"
    assert booked.structured_content == {"reservation_id": "r1"}
    assert "Find them with find_capability" in instructions
    assert "rooms (book, query, reset)" in instructions


async def test_an_endpoint_that_is_added_is_announced(era: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcp import Client
    from mcp.shared.subscriptions import ToolsListChanged

    monkeypatch.setattr("bespeak.faces.mcp.http._INTERVAL", 0.01)
    heard = asyncio.Event()

    async def listen(message: Any) -> None:
        if type(message).__name__ == "ToolListChangedNotification":
            heard.set()

    async with Rooms().on_http() as (url, keeper), Client(url, mode=era, message_handler=listen) as client:
        await client.list_tools()
        add = keeper.dispatcher.server.add_endpoint
        if era == LEGACY:
            await add(HALLS)
            await asyncio.wait_for(heard.wait(), 20)
        else:
            async with client.listen(tools_list_changed=True) as events:
                await add(HALLS)
                assert isinstance(await asyncio.wait_for(anext(aiter(events)), 20), ToolsListChanged)
        names = [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]
    assert "find_halls" in names


async def test_servers_of_several_processes_keep_no_sessions_and_others_one_for_its_agent() -> None:
    async with Rooms().on_http(stateless=True) as (url, _), connected_to(url, LEGACY, agree, **WRITER) as client:
        found = await client.call_tool("query_rooms", {})
        error = error_in(await client.call_tool("book_rooms", {"room_id": "12"}))
        capabilities = client.server_capabilities
        async with httpx.AsyncClient(trust_env=False) as plain:
            stream = await plain.get(url, headers={"Accept": "text/event-stream"})
    assert found.structured_content == {"rooms": ["12", "14"]}
    assert error["code"] == "confirmation-required"
    assert capabilities.tools.list_changed is False
    assert stream.status_code == 405
    accept = {"Accept": "application/json, text/event-stream"}
    async with Rooms().on_http() as (url, _), httpx.AsyncClient(trust_env=False, timeout=30) as client:
        opened = await client.post(url, json=INITIALIZE, headers={**accept, **SENT})
        session = {"Mcp-Session-Id": opened.headers["mcp-session-id"], **accept}
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        other = await client.post(url, json=ping, headers={**session, "Agent-ID": "b" * 64})
        own = await client.post(url, json=ping, headers={**session, **SENT})
    assert (opened.status_code, other.status_code, own.status_code) == (200, 404, 200)


async def test_a_client_that_disconnects_cancels_its_call() -> None:
    rooms = Rooms()
    async with rooms.on_http() as (url, _):
        calling = asyncio.create_task(post(url, "tools/call", SENT, name="watch_rooms", arguments={}))
        await asyncio.wait_for(rooms.waiting.wait(), 20)
        calling.cancel()
        await asyncio.wait_for(rooms.cancelled.wait(), 20)


async def test_the_audit_trail_says_who_called_what_by_mcp_and_not_with_which_arguments(era: str) -> None:
    document = ServerDocument(audit=AuditSettings(records="all"))
    async with Rooms().on_http(document) as (url, keeper), connected_to(url, era, agree, **WRITER) as client:
        await client.call_tool("book_rooms", {"room_id": "secret-12"})
        [row] = await keeper.dispatcher.server.store.read(LatestAudit(10))
    payload = payload_of(row[-1])
    assert (payload["agent_id"], payload["face"]) == (AGENT, "mcp")
    assert (payload["method"], payload["path"]) == ("BOOK", "/rooms/{room_id}")
    assert "secret-12" not in str(payload)


# Credentials.


async def test_missing_tokens_and_scopes_are_challenged(tmp_path: Path) -> None:
    issued = Issuer(tmp_path)
    async with Rooms().on_http(issued.document) as (url, _):
        listed = await post(url)
        missing = await post(url, "tools/call", name="query_rooms", arguments={})
        wrong = await post(url, "tools/list", {"Authorization": "Bearer x.y.z"})
        good = await post(url, "tools/call", issued.bearer("rooms:read"), name="query_rooms", arguments={})
        lacking = await post(
            url, "tools/call", issued.bearer("rooms:read"), name="book_rooms", arguments={"room_id": "12"}
        )
    assert listed.status_code == 200
    assert (missing.status_code, wrong.status_code) == (401, 401)
    assert missing.headers["www-authenticate"].startswith(METADATA)
    assert (missing.json()["id"], missing.json()["error"]["data"]["code"]) == (7, "authorization-required")
    assert good.json()["result"]["structuredContent"] == {"rooms": ["12", "14"]}
    assert lacking.status_code == 403
    challenge = lacking.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in challenge
    assert challenge.endswith('scope="rooms:read rooms:write"')
    assert lacking.json()["error"]["data"]["missing_scopes"] == ["rooms:write"]


async def test_a_missing_scope_of_a_capability_is_named_in_a_403(tmp_path: Path) -> None:
    issued = Issuer(tmp_path)
    document = replace(issued.document, mcp=McpSettings(tools_listed=2))
    booking = {"name": "book_rooms", "arguments": {"room_id": "12"}}
    async with Rooms().on_http(document) as (url, _):
        reader = issued.bearer("rooms:read")
        call = partial(post, url, "tools/call")
        good = await call(reader, name="call_capability", arguments={"name": "query_rooms"})
        lacking = await call(reader, name="call_capability", arguments=booking)
        anonymous = await call(name="call_capability", arguments=booking)
        found = await call(name="find_capability", arguments={"query": "rooms"})
    assert good.json()["result"]["structuredContent"] == {"rooms": ["12", "14"]}
    assert (lacking.status_code, anonymous.status_code) == (403, 401)
    assert lacking.headers["www-authenticate"].endswith('scope="rooms:read rooms:write"')
    assert found.json()["result"]["structuredContent"]["matches"] == 4


async def test_metadata_names_issuer_and_scopes_and_discovery_may_need_an_identity(tmp_path: Path) -> None:
    issued = Issuer(tmp_path)
    async with Rooms().on_http(issued.document) as (url, _), httpx.AsyncClient(trust_env=False) as client:
        found = await client.get(url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp"))
    assert found.json() == {
        "resource": "https://rooms.example/agents/mcp",
        "resource_name": "Rooms",
        "scopes_supported": ["rooms:read", "rooms:write"],
        "bearer_methods_supported": ["header"],
        "authorization_servers": ["https://login.example"],
    }
    issued, rooms = Issuer(tmp_path), Rooms(policies=Policies(anonymous_discovery=False))
    async with rooms.on_http(issued.document) as (url, _):
        anonymous, known = await post(url), await post(url, "tools/list", issued.bearer("rooms:read"))
    assert (anonymous.status_code, known.status_code) == (401, 200)


# Guards and bad input.


@rows("headers, number", ({"Host": "evil.example"}, 421), ({"Origin": "https://evil.example"}, 403))
async def test_foreign_hosts_and_origins_are_refused(headers: dict[str, str], number: int) -> None:
    async with Rooms().on_http() as (url, _):
        assert (await post(url, "tools/list", headers)).status_code == number


def beds(value: str) -> bytes:
    return PLAIN.replace('"beds": 2', f'"beds": {value}').encode()


@rows(
    "body, code",
    *[(body, -32700) for body in (b"{", b"\xff", b"[" * 5000, PLAIN.encode("utf-16"), beds("NaN"))],
    *[(body, -32700) for body in (beds('"\\ud800"'), beds("[" * 100_000))],
    *[(body, -32600) for body in (beds("1e999"), beds("9" * 5000), b"[]", f"[{PLAIN}, {PLAIN}]".encode())],
    *[(body, -32600) for body in (b"null", PLAIN.replace('"query_rooms"', "5").encode())],
    (PLAIN[: PLAIN.index('{"name"')].encode() + b"[]}", -32600),
)
async def test_a_body_that_is_not_a_message_is_refused(body: bytes, code: int) -> None:
    headers, _ = modern("tools/call", name="query_rooms")
    async with Rooms().on_http() as (url, _), httpx.AsyncClient(trust_env=False, timeout=30) as client:
        for sent in (headers, {name: value for name, value in headers.items() if not name.lower().startswith("mcp")}):
            answer = await client.post(url, content=body, headers=sent)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
            assert "pydantic" not in answer.text


TOO_LARGE = beds('"' + "x" * DEFAULT_LIMITS.body + '"')


@rows(
    "body",
    *(b"", b'{"jsonrpc": "2.0"}', TOO_LARGE),
    *(PLAIN.replace('"id": 7', f'"id": {number}').encode() for number in ("null", "true", "1.5", "[]")),
    PLAIN.replace('{"beds": 2}', "[1]").encode(),
    PLAIN.replace('"_meta": {', '"_meta": [], "x": {').encode(),
    ids=range(9),
)
async def test_a_message_that_is_not_valid_is_refused(body: bytes) -> None:
    headers, _ = modern("tools/call", name="query_rooms")
    async with Rooms().on_http() as (url, _), httpx.AsyncClient(trust_env=False, timeout=30) as client:
        answer = await client.post(url, content=body, headers=headers)
    assert answer.status_code == (413 if body is TOO_LARGE else 400)
    assert "Traceback" not in answer.text


async def test_deep_arguments_are_refused_and_without_tokens_there_is_no_metadata() -> None:
    headers, _ = modern("tools/call", name="query_rooms")
    async with Rooms().on_http() as (url, _), httpx.AsyncClient(trust_env=False, timeout=30) as client:
        body = beds("[" * 900 + "]" * 900)
        answer = await client.post(url, content=body, headers={**headers, **SENT})
    assert "nested" in answer.json()["result"]["content"][0]["text"]
    async with Rooms().on_http() as (url, _), httpx.AsyncClient(trust_env=False) as client:
        found = await client.get(url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp"))
    assert found.status_code == 404


async def test_blanks_around_a_header_do_no_harm_but_one_that_differs_from_the_body_is_refused() -> None:
    headers, body = modern("tools/call", name="query_rooms", arguments={})
    text = json.dumps(body)
    lines = [f"{name}: {value}  " for name, value in {**headers, **SENT}.items()]
    async with Rooms().on_http() as (url, _):
        place = urlsplit(url)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        head = ["POST /mcp HTTP/1.1", f"Host: {place.netloc}", f"Content-Length: {len(text)}", *lines, "", ""]
        writer.write("\r\n".join(head).encode() + text.encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.transport.abort()
        answer = await post(url, "tools/call", {**SENT, "Mcp-Name": "list_floors"}, name="query_rooms", arguments={})
    assert answer.status_code == 400
