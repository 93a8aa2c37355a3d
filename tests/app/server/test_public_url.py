"""Where the world finds the HTTP face, and how the manifest says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.service import echo, make_endpoint

from bespeak.app.server.settings import Settings, with_http_face, with_public_url
from bespeak.contract.policy import Policies
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.protocol.address import Address

FIND = make_endpoint("FIND", "/rooms", echo)
SERVICE = Service(
    identity=ServerIdentity(server_id="rooms.example", operator="Acme", contact="ops@acme.example"), endpoints=(FIND,)
)


def settings(http: Address | None, **more: object) -> Settings:
    return Settings(target="x", address=Address("127.0.0.1", 1), http=http, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "url"),
    [
        (settings(None), None),
        (settings(Address("127.0.0.1", 8080)), "http://127.0.0.1:8080"),
        (settings(Address("::1", 8080)), "http://[::1]:8080"),
        (settings(Address("0.0.0.0", 443), certificate=Path("c"), key=Path("k")), "https://rooms.example:443"),
        (settings(Address("127.0.0.1", 8080), web=HttpSettings(url="https://a.example")), "https://a.example"),
        (settings(Address("127.0.0.1", 0)), None),
    ],
)
def test_the_configured_url_takes_precedence_over_the_listening_address(given: Settings, url: str | None) -> None:
    assert with_public_url(given, SERVICE).web.url == url


def test_the_manifest_names_the_face_once() -> None:
    once = with_http_face(SERVICE, "https://a.example")
    assert [api["http_documentation"] for api in once.apis] == ["https://a.example/openapi.json"]
    assert with_http_face(once, "https://a.example") == once
    assert len(with_http_face(once, "https://b.example").apis) == 2


@pytest.mark.parametrize(
    "hidden",
    [
        replace(SERVICE, policies=Policies(anonymous_discovery=False)),
        replace(SERVICE, endpoints=(replace(FIND, internal=True),)),
        replace(SERVICE, endpoints=()),
    ],
)
def test_documents_that_are_not_there_are_not_named(hidden: Service) -> None:
    [face] = with_http_face(hidden, "https://a.example").apis
    assert (face["url"], "http_documentation" in face, "discovery" in face) == ("https://a.example", False, False)
