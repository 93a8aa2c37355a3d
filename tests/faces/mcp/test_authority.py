"""Authority over MCP with the SDK's OAuth client: 401, a token, 403 with the scope, a better token."""

from __future__ import annotations

import json
import ssl
from pathlib import Path
from typing import Any

import pytest
from tests.cases import rows
from tests.documents.openapi.notes_api import described, running_notes
from tests.faces.mcp.issuer import ISSUER, RESOURCE, Issuer
from tests.faces.mcp.tools import Rooms, agree, answering, modern, on_http

from bespeak.app.server.target import load_target

pytestmark = pytest.mark.anyio


class Memory:
    """Tokens of a client."""

    def __init__(self) -> None:
        self._tokens: Any = None

    async def get_tokens(self) -> Any:
        return self._tokens

    async def set_tokens(self, tokens: Any) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> Any:
        return None

    async def set_client_info(self, _: Any) -> None:
        pass


def network(issuer: Issuer, url: str) -> Any:
    """Make a client for which the public names lead to the issuer and to the server at `url`."""
    import httpx2

    class Public(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: Any) -> Any:
            request.url = httpx2.URL(url).copy_with(path=request.url.path)
            return await super().handle_async_request(request)

    places = {ISSUER: httpx2.ASGITransport(app=issuer), "https://rooms.example": Public()}
    return httpx2.AsyncClient(mounts=places, timeout=30, trust_env=False)


async def test_a_client_gets_a_token_and_then_one_with_the_scope_that_a_call_lacks(era: str, tmp_path: Path) -> None:
    from mcp import Client
    from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
    from mcp.client.streamable_http import streamable_http_client

    issuer, rooms = Issuer(tmp_path), Rooms()
    async with rooms.on_http(issuer.document) as (url, _), network(issuer, url) as http:
        http.auth = ClientCredentialsOAuthProvider(RESOURCE, Memory(), "tests", "secret", issuer=ISSUER)
        transport = streamable_http_client(RESOURCE, http_client=http)
        async with Client(transport, mode=era, elicitation_callback=answering(agree)) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert (names[0], issuer.asked) == ("book_rooms", [])
            found = await client.call_tool("query_rooms", {})
            assert [form["scope"] for form in issuer.asked] == ["rooms:read"]
            booked = await client.call_tool("book_rooms", {"room_id": "12"})
    assert found.structured_content == {"rooms": ["12", "14"]}
    assert booked.structured_content == {"reservation_id": "r1"}
    assert [set(form["scope"].split()) for form in issuer.asked] == [{"rooms:read"}, {"rooms:read", "rooms:write"}]
    assert {form["resource"] for form in issuer.asked} == {RESOURCE}


@rows(
    "audience, number",
    *[(audience, 200) for audience in (RESOURCE, "rooms.example", ["x", RESOURCE])],
    *[(audience, 401) for audience in ("https://rooms.example", "https://other.example/mcp", None)],
)
async def test_a_token_must_be_for_this_server(audience: Any, number: int, tmp_path: Path) -> None:
    issuer = Issuer(tmp_path)
    async with Rooms().on_http(issuer.document) as (url, _), network(issuer, url) as http:
        headers, body = modern("tools/call", name="query_rooms", arguments={})
        token = {"Authorization": f"Bearer {issuer.token(aud=audience, scope='rooms:read')}"}
        answer = await http.post(RESOURCE, json=body, headers={**headers, **token})
    assert answer.status_code == number
    if number == 401:
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]


@pytest.mark.parametrize("place", ["", "/mcp", "/agents/mcp"])
async def test_metadata_is_at_every_place_where_clients_look(place: str, tmp_path: Path) -> None:
    issuer = Issuer(tmp_path)
    async with Rooms().on_http(issuer.document) as (url, _), network(issuer, url) as http:
        found = await http.get(f"https://rooms.example/.well-known/oauth-protected-resource{place}")
    assert (found.json()["resource"], found.json()["authorization_servers"]) == (RESOURCE, [ISSUER])


async def test_a_token_of_a_caller_is_not_sent_to_an_upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    issuer = Issuer(tmp_path)
    with running_notes(tmp_path) as notes:
        monkeypatch.setenv("UPSTREAM_ACME_NOTES_API_KEY", "secret-key")
        trust = ssl.create_default_context(cafile=str(notes.authority))
        monkeypatch.setattr("bespeak.runtime.bindings.upstream.system_trust", lambda: trust)
        (tmp_path / "notes.json").write_text(json.dumps(described(f"https://127.0.0.1:{notes.port}")))
        target = load_target(str(tmp_path / "notes.json"))
        async with on_http(target, issuer.document) as (url, _, _), network(issuer, url) as http:
            headers, body = modern("tools/call", name="list_notes", arguments={})
            token = issuer.token(aud=RESOURCE, scope="acme-notes:read")
            answer = await http.post(RESOURCE, json=body, headers={**headers, "Authorization": f"Bearer {token}"})
    assert answer.json()["result"]["structuredContent"] == {"items": [{"id": "1", "text": "one"}]}
    (seen,) = notes.seen
    assert token not in str(seen)
    assert seen.headers["x-api-key"] == "secret-key"
