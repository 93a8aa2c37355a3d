"""Capabilities: templates and places."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.agent.discovery.capability import (
    PLACEHOLDER,
    Capability,
    Placement,
    in_braces,
    input_schema,
    may_name_header,
    resolve_template,
)
from bespeak.protocol.address_guard import AddressFault, Origin, WebAddress

HERE = Origin("https", "a.example", 443)
BASE = WebAddress(HERE, "/.well-known/ai")


@pytest.mark.requirement("AI-3.3-8", "AI-3.3-9")
@pytest.mark.parametrize(
    ("text", "origin", "target"),
    [
        ("/x", HERE, "/x"),
        ("/x/:id", HERE, "/x/{id}"),
        ("/x/{id}/y/:n?z=1", HERE, "/x/{id}/y/{n}?z=1"),
        ("/room:book", HERE, "/room:book"),
        ("/rooms/{room_id}:find", HERE, "/rooms/{room_id}:find"),
        ("https://b.example/x/:id", Origin("https", "b.example", 443), "/x/{id}"),
        ("https://b.example:8443/{a}/{a}", Origin("https", "b.example", 8443), "/{a}/{a}"),
        ("https://b.example", Origin("https", "b.example", 443), "/"),
    ],
)
def test_an_endpoint_is_resolved_with_its_parameters(text: str, origin: Origin, target: str) -> None:
    assert resolve_template(text, BASE) == (origin, target)


@pytest.mark.parametrize(
    "text", ["javascript:{x}", "https://{host}/x", "http://b.example/", "https://b.example:{port}/", "/x/{a$b}", "/{}"]
)
def test_invalid_endpoint_is_refused(text: str) -> None:
    assert isinstance(resolve_template(text, BASE), AddressFault)


def test_placements_override_the_default_of_the_method() -> None:
    read = Capability(id="r", method="GET", path="/x/{id}", origin=HERE, target="/x/{id}")
    write = Capability(
        id="w", method="POST", path="/x", origin=HERE, target="/x", placements={"k": Placement("header", "X-K")}
    )
    assert [read.place_of(name).place for name in ("id", "q")] == ["path", "query"]
    assert [write.place_of(name).place for name in ("k", "q")] == ["header", "body"]
    assert (read.is_idempotent, write.is_idempotent) == (True, False)


def test_path_parameters_are_required() -> None:
    assert input_schema({"q": {"type": "integer"}}, ["q"], ["id"], closed=True) == {
        "type": "object",
        "properties": {"q": {"type": "integer"}, "id": {"type": ["string", "integer"]}},
        "required": ["q", "id"],
        "additionalProperties": False,
    }


@given(st.text(alphabet="/:{}ax.?-", max_size=30))
def test_resolved_target_has_braces_only_for_parameters(text: str) -> None:
    found = resolve_template(text, BASE)
    assert isinstance(found, AddressFault) or "{" not in PLACEHOLDER.sub("", found[1])


@pytest.mark.parametrize(
    ("name", "expected"), [("X-Key", True), ("Host", False), ("content-length", False), ("a b", False), ("", False)]
)
def test_a_document_names_no_header_that_a_message_hangs_on(name: str, expected: bool) -> None:
    assert may_name_header(name) is expected


def test_parameters_have_one_form() -> None:
    assert in_braces("/x/:id/room:book/{n}") == "/x/{id}/room:book/{n}"
