""""""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.checks.lint.conftest import ROOM

from bespeak.contract.handler import ExternalService
from bespeak.runtime.bindings.external import (
    LONGEST_WAIT,
    check_setup,
    decode_answer,
    decode_text,
    rename,
    resolve_credentials,
    retry_after,
    upstream_url,
)
from bespeak.runtime.bindings.upstream_request import Credentials
from bespeak.text.diagnostics.diagnostic import Diagnostic

SECRET = "s3cr3t"


def service(**fields: Any) -> ExternalService:
    return ExternalService(**{"url": "https://u.example/rooms", "method": "GET", **fields})


def resolved(environment: Mapping[str, str], **fields: Any) -> Credentials | list[Diagnostic]:
    return resolve_credentials(ROOM, service(**fields), environment)


@pytest.mark.parametrize(
    ("key", "member"),
    [("headers", "headers"), ("query_credentials", "query"), ("cookie_credentials", "cookies")],
)
def test_variables_are_taken_from_the_environment_in_every_place(key: str, member: str) -> None:
    found = resolved({"A": SECRET, "B": "2"}, **{key: {"name": "${A}.${B}"}})
    assert isinstance(found, Credentials)
    assert getattr(found, member) == {"name": f"{SECRET}.2"}


@pytest.mark.parametrize("key", ["headers", "query_credentials", "cookie_credentials"])
def test_a_variable_that_is_not_set_is_named_and_its_value_shown_nowhere(key: str) -> None:
    found = resolved({"A": SECRET}, **{key: {"first": "${A}${MISSING}", "second": "${A}"}})
    assert isinstance(found, list)
    assert [finding.pointer for finding in found] == [f"/endpoint/handler/{key}/first"]
    assert "'MISSING'" in found[0].message
    assert SECRET not in str(found)


@pytest.mark.parametrize(
    ("key", "name", "value"),
    [
        ("headers", "X A", "1"),
        ("headers", "A", "1\r\nB: 2"),
        ("headers", "A", "é"),
        ("query_credentials", "", "1"),
        ("query_credentials", "key", "1\n2"),
        ("cookie_credentials", "a b", "1"),
        ("cookie_credentials", "sid", "1; admin=1"),
        ("cookie_credentials", "sid", "1 2"),
        ("cookie_credentials", "sid", "1\r\nB: 2"),
        ("cookie_credentials", "sid", "é"),
    ],
)
def test_a_credential_that_cannot_be_sent_is_found_without_being_shown(key: str, name: str, value: str) -> None:
    found = resolved({"V": f"{SECRET}{value}"}, **{key: {name: "${V}"}})
    assert isinstance(found, list)
    assert len(found) == 1
    assert SECRET not in str(found)


def test_a_credential_in_the_query_may_need_encoding() -> None:
    assert isinstance(resolved({"V": "a b&c=é"}, query_credentials={"key": "${V}"}), Credentials)


@pytest.mark.parametrize("path", ["/{room_id}", "/files/{room_id}.json", "/{room_id}-{room_id}", "/x?a={room_id}"])
def test_placeholders_may_be_a_part_of_a_segment(path: str) -> None:
    handler = service(url=f"https://u.example{path}")
    assert check_setup(ROOM, handler) == []
    url = upstream_url(handler)
    assert url is not None
    assert url.host == "u.example"


@pytest.mark.parametrize("url", ["", "https://", "nonsense", "https://[::1", "https://a:x/"])
def test_an_invalid_url_is_reported(url: str) -> None:
    handler = service(url=url)
    assert upstream_url(handler) is None
    assert len(check_setup(ROOM, handler)) == 1


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"method": "POST"}, 1),
        ({"method": "POST", "query": ("a",)}, 0),
        ({"method": "POST", "query": ("a", "b")}, 1),
        ({"method": "GET", "query": ("a",)}, 1),
        ({"method": "POST", "query": ("a",), "body_field": "room_id"}, 1),
    ],
)
def test_one_upstream_name_may_occur_once_in_the_query_and_once_in_the_body(fields: dict[str, Any], count: int) -> None:
    handler = service(input_transform={"a": "id", "b": "id"}, **fields)
    assert len(check_setup(ROOM, handler)) == count


@pytest.mark.parametrize(
    ("body", "charset", "text"),
    [
        (b"caf\xc3\xa9", None, "café"),
        (b"caf\xe9", "ISO-8859-1", "café"),
        (b"caf\xe9", "windows-1252", "café"),
        ("日本".encode("shift_jis"), "Shift_JIS", "日本"),
        ("é".encode("utf-16"), "utf-16", "é"),
        (b"", None, ""),
    ],
)
def test_a_text_is_read_by_its_charset(body: bytes, charset: str | None, text: str) -> None:
    assert decode_text(bytearray(body), charset, "identity") == text


@pytest.mark.parametrize("charset", ["idna", "punycode", "zlib", "rot13", "unicode_escape", "x" * 99, "utf-8\x00", ""])
def test_an_encoding_that_is_not_a_text_charset_is_refused(charset: str) -> None:
    with pytest.raises(ValueError, match="charset"):
        decode_text(b"abc", charset, None)


@pytest.mark.parametrize(
    ("body", "charset"), [(b"\xff", None), (b"\xff", "ascii"), (b"x", "utf-16"), (b"x", "iso-8859-12")]
)
def test_invalid_text_is_refused(body: bytes, charset: str | None) -> None:
    with pytest.raises(ValueError, match="charset"):
        decode_text(body, charset, None)


def test_a_compressed_text_is_refused_however_it_could_be_read() -> None:
    with pytest.raises(ValueError, match="compressed"):
        decode_text(b"\x1f\x8b", "latin-1", "gzip")


@given(st.binary(max_size=50), st.text(max_size=20) | st.none())
def test_no_text_and_no_charset_does_worse_than_a_refusal(body: bytes, charset: str | None) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(decode_text(body, charset, None), str)


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"a":', b"{\xff}", b"[" * 100_000])
def test_invalid_json_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="not JSON"):
        decode_answer(body)


@pytest.mark.parametrize("code", [429, 503])
@pytest.mark.parametrize(
    ("told", "wait"),
    [
        ("7", "7"),
        (" 120 ", "120"),
        ("0", "1"),
        ("999999999999999999999", str(LONGEST_WAIT)),
        ("Fri, 31 Dec 9999 23:59:59 GMT", str(LONGEST_WAIT)),
        ("Wed, 21 Oct 2015 07:28:00 GMT", "1"),
    ],
)
def test_the_wait_an_upstream_asks_for_is_passed_on_within_bounds(code: int, told: str, wait: str) -> None:
    assert retry_after(code, {"retry-after": told}) == (("Retry-After", wait),)


@pytest.mark.parametrize("told", ["", "soon", "-1", "1.5", "1e9", "٣", "Wed, 99 Oct 2015", "\x00"])
def test_an_invalid_retry_after_is_omitted(told: str) -> None:
    assert retry_after(429, {"retry-after": told}) == ()


@pytest.mark.parametrize("code", [200, 404, 500])
def test_other_failures_do_not_ask_for_a_wait(code: int) -> None:
    assert retry_after(code, {"retry-after": "7"}) == ()


@given(st.text(max_size=40))
def test_any_text_is_a_wait_in_bounds_or_none(told: str) -> None:
    for _, wait in retry_after(503, {"retry-after": told}):
        assert 1 <= int(wait) <= LONGEST_WAIT


def test_a_renamed_field_counts_where_two_would_meet() -> None:
    assert rename({"a": 1, "b": 2, "c": 3}, {"a": "b"}) == {"b": 1, "c": 3}
