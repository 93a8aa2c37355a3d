"""Header blocks and responses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.protocol.exchange.headers import (
    HeaderBlock,
    entity_tag,
    essence,
    foreign_charset,
    is_header_name,
    is_header_value,
    is_held,
    is_json,
    is_media_type,
    names_manifest,
    negotiate,
    prefers_agis,
)
from bespeak.protocol.exchange.messages import Response


def test_a_block_is_encoded_once_and_can_grow() -> None:
    block = HeaderBlock(("Server-ID", "a.example"))
    longer = block.plus(("Content-Type", "application/json"))
    assert block.encoded == b"Server-ID: a.example\r\n"
    assert longer.encoded == b"Server-ID: a.example\r\nContent-Type: application/json\r\n"


def test_header_is_found_by_any_case_and_its_name_and_value_are_limited() -> None:
    response = Response(200, b"", HeaderBlock(("Server-ID", "a")), (("Task-ID", "t"),))
    assert (response.header("server-id"), response.header("TASK-ID"), response.header("ETag")) == ("a", "t", None)
    assert is_header_value("a b\tc")
    assert not any(is_header_value(value) for value in ("a\r\nb", "a\x00", "a\x7f", "\n"))
    assert is_header_name("X-Api-Key")
    assert not any(is_header_name(name) for name in ("", "a b", "a:", "ä"))


@rows(
    "accept",
    *("application/agis", "Application/AGIS", "application/agis+json", "application/agis;q=0.5"),
    "application/agis; charset=utf-8; q=0.5, */*;q=0.1",
    *("application/vnd.agtp.manifest+json;q=0.2, application/agis;q=0.3", "application/agis, application/json"),
)
def test_an_accept_that_names_the_agis_document_prefers_it(accept: str) -> None:
    assert prefers_agis({"accept": accept})


@rows(
    "accept",
    *("", "*/*", "application/*", "application/json", "application/agis;q=0", "application/agis;q=often"),
    *("application/agis;q=nan", "application/agis;q=2", "application/agisx"),
    "application/vnd.agtp.manifest+json, application/agis;q=0.9",
    "application/agis," + "a" * 2000,
)
def test_an_accept_with_a_higher_weight_or_no_type_does_not_prefer_agis(accept: str) -> None:
    assert not prefers_agis({"accept": accept})


def test_without_the_header_nothing_is_preferred() -> None:
    assert not prefers_agis({})


@given(st.text(max_size=200))
def test_no_header_is_too_strange(accept: str) -> None:
    assert prefers_agis({"accept": accept}) in (True, False)


@rows(
    "accept, named",
    ("application/vnd.agtp.manifest+json", True),
    ("text/html, application/vnd.agtp.manifest+json;q=0.1", True),
    ("application/vnd.agtp.manifest+json;q=0", False),
    ("application/json", False),
    ("*/*", False),
)
def test_the_manifest_is_named_by_its_own_type_only(accept: str, named: bool) -> None:
    assert names_manifest({"accept": accept}) is named


OFFERS = ("application/json", "application/agis", "text/markdown", "text/plain", "text/html")


@rows(
    "accept, best",
    (None, "application/json"),
    ("*/*", "application/json"),
    ("application/*", "application/json"),
    ("application/agis", "application/agis"),
    ("application/agis, */*", "application/agis"),
    ("*/*, application/agis;q=0.5", "application/json"),
    ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html"),
    ("text/*", "text/markdown"),
    ("text/*, text/markdown;q=0", "text/plain"),
    ("text/plain;q=0.9, text/markdown", "text/markdown"),
    ("TEXT/Plain", "text/plain"),
    ("image/png", "application/json"),
    ("application/json;q=0", "application/json"),
    ("a" * 2000, "application/json"),
)
def test_the_offer_that_suits_best_is_chosen_and_never_none(accept: str | None, best: str) -> None:
    assert negotiate({} if accept is None else {"accept": accept}, OFFERS) == best


@given(st.text(max_size=200))
def test_every_accept_header_selects_an_offer(accept: str) -> None:
    assert negotiate({"accept": accept}, OFFERS) in OFFERS


@rows(
    "text, expected",
    ("image/png", True),
    ('text/csv; charset=utf-8; header="present"', True),
    ("image/*", False),
    ("text", False),
    ("text/plain, text/csv", False),
    ("text/plain\r\nX-Evil: 1", False),
    ('text/plain; a="\r\nX-Evil: 1"', False),
    ("text/" + "x" * 200, False),
)
def test_a_media_type_has_a_type_a_subtype_and_parameters(text: str, expected: bool) -> None:
    assert is_media_type(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [(" Text/HTML ; charset=x", "text/html"), ("text/html;", "text/html"), ("", ""), ("; charset=utf-8", "")],
)
def test_parameters_and_case_are_not_part_of_a_type(text: str, expected: str) -> None:
    assert essence(text) == expected


@rows(
    "text, expected",
    ("application/json", True),
    ("Application/JSON; charset=utf-8", True),
    ("application/vnd.x+json", True),
    ("text/json", False),
    ("text/x+json", False),
    ("application/jsonx", False),
    ("json", False),
    ("", False),
)
def test_json_is_known_by_its_name(text: str, expected: bool) -> None:
    assert is_json(text) is expected


@rows(
    "media_type, charset",
    ("application/json", None),
    ("application/json; charset=UTF-8", None),
    ('application/json;v=1; Charset="utf8"', None),
    ("application/json; charset=us-ascii", None),
    ("application/json; charset=latin-1", "latin-1"),
    ("application/json; charset=utf-8; charset=utf-16", "utf-16"),
    ("application/json; charset", ""),
)
def test_charset_that_is_not_utf8_is_found(media_type: str, charset: str | None) -> None:
    assert foreign_charset(media_type) == charset


TAG = entity_tag(b"rooms")


def test_tag_is_in_quotes_and_follows_the_bytes_and_a_request_without_tags_holds_nothing() -> None:
    assert TAG == entity_tag(b"rooms") != entity_tag(b"room")
    assert TAG[0] == TAG[-1] == '"'
    assert not is_held(TAG, {"if-match": TAG})


@pytest.mark.parametrize("held", [TAG, f"W/{TAG}", f'"other", {TAG}', f'"other",W/{TAG} ', "*"])
def test_a_request_that_names_the_tag_holds_it(held: str) -> None:
    assert is_held(TAG, {"if-none-match": held})


@pytest.mark.parametrize("held", ["", '"other"', TAG.strip('"'), TAG[:-2] + '"', f"w/{TAG}"])
def test_anything_else_is_not_it(held: str) -> None:
    assert not is_held(TAG, {"if-none-match": held})
