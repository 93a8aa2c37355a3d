"""Applications beside the HTTP face: where they are, and the metadata of their tokens."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from tests.service import build, echo, make_endpoint

from bespeak.app.server.http_face import make_guard, mount
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.faces.http.asgi import HttpResponse, Message, Receive, Scope, Send
from bespeak.faces.http.guard import METADATA, Guard
from bespeak.state.identity.settings import AuthSettings, TokenSettings

pytestmark = pytest.mark.anyio

WEB = HttpSettings(url="https://x.example/agents")


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Do nothing."""


async def nothing() -> Message:
    return {"type": "http.request"}


def test_an_application_is_found_with_and_without_the_prefix_of_the_public_url() -> None:
    assert sorted(mount("/a2a", application, WEB, {})) == [
        f"{METADATA}/a2a",
        f"{METADATA}/agents/a2a",
        "/a2a",
        "/agents/a2a",
    ]


async def described(guard: Guard) -> HttpResponse:
    found = await guard.admit({"type": "http", "method": "GET", "path": f"{METADATA}/a2a", "headers": []}, nothing)
    assert isinstance(found, HttpResponse)
    return found


def taking(issuer: str) -> AuthSettings:
    return AuthSettings(modes=("token",), token=TokenSettings(issuer=issuer))


async def test_metadata_names_the_resource_its_issuer_and_the_scopes_of_listed_endpoints() -> None:
    listed = make_endpoint("FIND", "/rooms", echo, scopes=("rooms:read",))
    hidden = replace(make_endpoint("FIND", "/ledger", echo, scopes=("ledger:read",)), internal=True)
    found = await described(make_guard("/a2a", build(listed, hidden).dispatcher, WEB, taking("https://login.example")))
    document = msgspec.json.decode(found.body)
    assert (document["resource"], document["scopes_supported"]) == ("https://x.example/agents/a2a", ["rooms:read"])
    assert document["authorization_servers"] == ["https://login.example"]


@pytest.mark.parametrize(("web", "issuer"), [(WEB, "login"), (HttpSettings(), "https://login.example")])
async def test_without_the_url_of_issuer_or_server_there_is_no_metadata(web: HttpSettings, issuer: str) -> None:
    guard = make_guard("/a2a", build().dispatcher, web, taking(issuer))
    assert (await described(guard)).status == 404
    assert guard.challenges


def test_a_server_without_tokens_does_not_challenge() -> None:
    assert not make_guard("/a2a", build().dispatcher, WEB, AuthSettings()).challenges
