"""The page for browsers: nothing in a contract becomes markup, and its size is bounded."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.service import echo, make_endpoint

from bespeak.contract.endpoint import Deprecation, Endpoint
from bespeak.contract.policy import Policies
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.projections.web_page import MOST_SHOWN, POLICY, project_page

WEB = HttpSettings(url="https://rooms.example/desk")
TEXT = {"type": "string"}
FIND = make_endpoint("FIND", "/rooms", echo, properties={"beds": {"type": "integer"}}, required=("beds",))
BOOK = make_endpoint("BOOK", "/room", echo, properties={"room_id": TEXT}, required=("room_id",), impact="irreversible")
HIDDEN = replace(make_endpoint("AUDIT", "/ledger", echo), internal=True)


def page(*endpoints: Endpoint, modes: Sequence[str] = ("open",), name: str = "", **fields: Any) -> str:
    identity = ServerIdentity(server_id="rooms.example", operator="Acme", contact="", name=name)
    policies = fields.pop("policies", Policies())
    service = Service(identity=identity, endpoints=endpoints, policies=policies, **fields)
    documents = {"/openapi.json": "every schema"}
    return project_page(service, endpoints, WEB, modes, documents, policies=policies)


class Markup(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def described(text: str) -> str:
    endpoint = replace(FIND, semantic=replace(FIND.semantic, intent=text or "x"), required_scopes=(text or "x",))
    return page(endpoint, name=text, description=text or "x")


@given(st.text() | st.text("<>&\"'/= \n`scriptonload!-", max_size=40))
def test_no_text_of_a_contract_becomes_markup(text: str) -> None:
    text = text if text.strip() else "x"
    assert Markup(described(text)).elements == Markup(described("plain")).elements


def test_texts_are_shown_as_they_are_written() -> None:
    assert Markup(described('<script>alert("1")</script> & more')).text.count('<script>alert("1")</script> & more') >= 4


def test_characters_that_reorder_or_hide_a_text_are_shown_as_code() -> None:
    text = Markup(described("safe\u202eevas \x07bell")).text
    assert "\u202e" not in text
    assert text.count("safe\\u202eevas \\x07bell") >= 4


def test_the_policy_allows_the_one_style_sheet_and_no_script() -> None:
    [style] = re.findall(r"<style>(.*?)</style>", page(FIND), re.DOTALL)
    assert f"'sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}'" in POLICY
    assert POLICY.startswith("default-src 'none'; ")
    assert "unsafe" not in POLICY
    assert "style=" not in page(FIND, BOOK)


def test_an_endpoint_is_shown_with_its_route_intent_impact_scopes_and_state() -> None:
    booking = replace(BOOK, required_scopes=("booking:room", "calendar:write"))
    text = Markup(page(FIND, booking, HIDDEN, policies=Policies(confirm_irreversible=True))).text
    for part in ("FIND /rooms", "GET /rooms:find", "only reads", "POST /room:book", booking.semantic.intent):
        assert part in text
    assert "cannot be undone; waits until somebody else confirms it; needs the scopes booking:room, calendar" in text
    assert "ledger" not in text
    assert "only reads; deprecated" in page(replace(FIND, deprecated=Deprecation(deprecated_in="1.1"))).replace(
        "</span>", ""
    )
    assert "lists no endpoints in public" in page(HIDDEN)
    assert "curl" not in page(HIDDEN)


def test_ten_thousand_endpoints_make_a_short_page_that_says_so() -> None:
    many = [make_endpoint("FETCH", f"/thing{number}", echo) for number in range(10_000)]
    text = page(*(replace(one, required_scopes=("a:b",) * 500) for one in many), description="long " * 10_000)
    assert f"{10_000 - MOST_SHOWN:,} more endpoints are not shown" in text
    assert len(text) < 150_000


NAMED = make_endpoint(
    "FETCH", "/rooms/{room_id}", echo, properties={"room_id": {"enum": ["a b"]}}, required=("room_id",)
)
HUGE = make_endpoint("BOOK", "/room", echo, properties={"x": {"type": "string", "minLength": 900}}, required=("x",))


@rows(
    "endpoint, modes, command",
    (FIND, ("open",), ["curl", "https://rooms.example/desk/rooms:find?beds=1"]),
    (NAMED, ("open",), ["curl", "https://rooms.example/desk/rooms/a%20b:fetch"]),
    (BOOK, ("open",), ["curl", "--json", '{"room_id":"x"}', "https://rooms.example/desk/room:book"]),
    (
        replace(FIND, required_scopes=("a:b", "c:d")),
        ("open",),
        [
            *("curl", "-H", f"Agent-ID: {'0a3f' * 16}", "-H", "Authority-Scope: a:b, c:d"),
            "https://rooms.example/desk/rooms:find?beds=1",
        ],
    ),
    (
        FIND,
        ("token", "mtls"),
        ["curl", "-H", "Authorization: Bearer YOUR-TOKEN", "https://rooms.example/desk/rooms:find?beds=1"],
    ),
    (
        FIND,
        ("mtls",),
        ["curl", "--cert", "agent.pem", "--key", "agent.key", "https://rooms.example/desk/rooms:find?beds=1"],
    ),
    (
        FIND,
        ("signature",),
        [
            "bespeak",
            "call",
            "https://rooms.example/desk",
            "FIND",
            "/rooms",
            "-d",
            '{"beds":1}',
            "--agent-key=agent.pem",
        ],
    ),
    (HUGE, ("open",), None),
)
def test_the_command_fits_the_endpoint_and_the_modes(
    endpoint: Endpoint, modes: Sequence[str], command: list[str] | None
) -> None:
    shown = re.search(r"<pre>(.*?)</pre>", page(endpoint, modes=modes), re.DOTALL)
    assert (shown and shlex.split(Markup(shown[1]).text)) == command


def test_the_command_calls_an_endpoint_that_only_reads_and_needs_no_scope() -> None:
    guarded = replace(make_endpoint("FIND", "/guests", echo), required_scopes=("guests:read",))
    assert "/desk/rooms:find" in page(BOOK, guarded, FIND)
