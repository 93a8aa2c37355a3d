"""The pages for browsers: nothing in a contract becomes markup, they are complete without a script, and bounded."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.service import echo, make_endpoint

from bespeak.contract.endpoint import DeclaredError, Deprecation, Endpoint
from bespeak.contract.policy import Policies
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.projections.reference.calls import Reach
from bespeak.documents.projections.reference.pages import MOST_LISTED, Documents, Looks, Reference

LOOKS = Looks("p { margin: 0 }", "'use strict';")
TEXT = {"type": "string"}
FIND = make_endpoint("FIND", "/rooms", echo, properties={"beds": {"type": "integer"}}, required=("beds",))
BOOK = make_endpoint("BOOK", "/room", echo, properties={"room_id": TEXT}, required=("room_id",), impact="irreversible")
NAMED = make_endpoint("FETCH", "/rooms/{room_id}", echo, properties={"room_id": TEXT}, required=("room_id",))
HIDDEN = replace(make_endpoint("AUDIT", "/ledger", echo), internal=True)


def reference(*endpoints: Endpoint, modes: Sequence[str] = ("open",), name: str = "", **fields: Any) -> Reference:
    identity = ServerIdentity(server_id="rooms.example", operator="Acme", contact="", name=name)
    policies = fields.pop("policies", Policies())
    service = Service(identity=identity, endpoints=endpoints, policies=policies, **fields)
    reach = Reach(url="https://rooms.example/desk", modes=modes, policies=policies, mcp=True)
    documents = Documents(links={"/openapi.json": "every schema"})
    return Reference(service, endpoints, reach, documents=documents, looks=LOOKS, prefix="/desk")


def first_page(*endpoints: Endpoint, **fields: Any) -> str:
    return reference(*endpoints, **fields).write(1).decode()


def page_of(endpoint: Endpoint, *others: Endpoint, **fields: Any) -> str:
    return reference(endpoint, *others, **fields).write(endpoint).decode()


class Markup(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.links += [value or "" for name, value in attrs if name == "href"]

    def handle_data(self, data: str) -> None:
        self.text += data


def described(text: str) -> Endpoint:
    said = text or "x"
    semantic = replace(FIND.semantic, intent=said, outcome=said, parameter_hints={"beds": [said]})
    schema = {"type": "object", "properties": {"beds": {"type": "string", "description": said, "enum": [said]}}}
    errors = (DeclaredError("full", said),)
    return replace(FIND, semantic=semantic, required_scopes=(said,), input_schema=schema, errors=errors)


@given(st.text() | st.text("<>&\"'/= \n`scriptonload!-", max_size=40))
def test_no_text_of_a_contract_becomes_markup(text: str) -> None:
    text = text if text.strip() else "x"
    for write in (first_page, page_of):
        page = Markup(write(described(text), name=text, description=text)).elements
        assert page == Markup(write(described("plain"), name="plain", description="plain")).elements


def test_texts_are_shown_as_they_are_written() -> None:
    text = '<script>alert("1")</script> & more'
    assert Markup(page_of(described(text))).text.count(text) >= 6


def test_characters_that_reorder_or_hide_a_text_are_shown_as_code() -> None:
    text = Markup(page_of(described("safe\u202eevas \x07bell"))).text
    assert "\u202e" not in text
    assert text.count("safe\\u202eevas \\x07bell") >= 6


def test_the_policy_allows_the_one_style_sheet_and_the_one_script() -> None:
    for page in (first_page(FIND), page_of(BOOK)):
        for tag, source in (("style", "style-src"), ("script", "script-src")):
            [content] = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            assert f"{source} 'sha256-{digest}'" in LOOKS.policy
        assert "style=" not in page
    assert LOOKS.policy.startswith("default-src 'none'; ")
    assert "unsafe" not in LOOKS.policy


def test_the_list_shows_listed_endpoints_by_namespace_and_the_documents() -> None:
    page = Markup(first_page(FIND, replace(BOOK, namespace="stays"), HIDDEN, description="A hotel."))
    for part in ("A hotel.", "FIND /rooms", "only reads", "BOOK /room", "cannot be undone", "stays", "every schema"):
        assert part in page.text
    assert "ledger" not in page.text
    assert "/desk/docs/FIND/rooms" in page.links
    assert "/desk/openapi.json" in page.links
    assert "lists no endpoints in public" in first_page(HIDDEN)


def test_an_endpoint_says_what_a_caller_should_know() -> None:
    booking = replace(
        BOOK,
        required_scopes=("booking:room", "calendar:write"),
        semantic=replace(BOOK.semantic, state_transition={"room.state": "free -> taken"}),
        errors=(DeclaredError("full", "No room is left."),),
    )
    text = Markup(page_of(booking, FIND, policies=Policies(confirm_irreversible=True))).text
    for part in (
        *(booking.semantic.intent, booking.semantic.outcome, "cannot be undone", "booking:room", "calendar:write"),
        *("Each call waits until somebody else confirms it.", "room.state: free -> taken", "No room is left."),
        *("POST /room:book", "book_room", "room_id required"),
    ):
        assert part in text


def test_a_deprecated_endpoint_leads_to_its_successor() -> None:
    old = replace(FIND, deprecated=Deprecation(deprecated_in="1.1", removed_in="2.0", successor_path="/room"))
    new = replace(FIND, path="/room")
    page = Markup(page_of(old, new))
    assert "Since version 1.1. It goes in version 2.0. Use FIND /room." in page.text
    assert "/desk/docs/FIND/room" in page.links
    assert "deprecated" in first_page(old)


def test_fields_of_fields_and_of_items_are_shown_with_their_bounds() -> None:
    guest = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 18}}, "required": ["age"]}
    schema = {"type": "object", "properties": {"guests": {"type": "array", "items": guest}}}
    text = Markup(page_of(replace(FIND, input_schema=schema))).text
    assert "guests" in text
    assert "array of object" in text
    assert "guests[].age required" in text
    assert "at least 18" in text


def test_a_schema_that_contains_itself_makes_a_page_of_bounded_size() -> None:
    fields = {f"field{number}": {"$ref": "#/$defs/node"} for number in range(20)}
    schema = {"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": fields}}}
    page = page_of(replace(FIND, input_schema=schema))
    assert "more fields are in the schema" in page
    assert len(page) < 150_000


def test_pages_are_found_by_their_paths_and_only_those() -> None:
    shown = reference(FIND, BOOK, HIDDEN)
    assert shown.find("/docs") == 1
    assert shown.find("/docs/FIND/rooms") == FIND
    assert reference(NAMED).find("/docs/FETCH/rooms/%7Broom_id%7D") == NAMED
    assert list(shown.paths()) == ["/docs/BOOK/room", "/docs/FIND/rooms"]
    for path in ("/docs/AUDIT/ledger", "/docs/find/rooms", "/docs/page-2", "/docs/page-x", "/docs/", "/docsFIND/rooms"):
        assert shown.find(path) is None


def test_ten_thousand_endpoints_make_pages_of_bounded_size_that_lead_to_each_other() -> None:
    many = [make_endpoint("FETCH", f"/thing{number}/parts", echo) for number in range(10_000)]
    shown = reference(*(replace(one, required_scopes=("a:b",) * 500) for one in many), description="long " * 10_000)
    assert shown.pages == 10_000 // MOST_LISTED
    for number in (1, 2, shown.pages):
        page = shown.write(number).decode()
        assert len(page) < 150_000
        assert page.count("<code><b>FETCH</b>") == MOST_LISTED
    assert "Endpoints 201 to 400 of 10,000" in Markup(shown.write(2).decode()).text
    assert "/desk/docs/page-3" in Markup(shown.write(2).decode()).links
    assert shown.find(f"/docs/page-{shown.pages}") == shown.pages
    assert shown.find(f"/docs/page-{shown.pages + 1}") is None
    assert len(msgspec.json.decode(shown.write_index())) == 10_000


def test_the_index_has_what_the_search_shows() -> None:
    rows = msgspec.json.decode(reference(FIND, HIDDEN).write_index())
    assert rows == [["FIND", "/rooms", FIND.semantic.intent, "informational"]]
