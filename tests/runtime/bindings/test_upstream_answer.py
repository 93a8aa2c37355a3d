from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.runtime.bindings.external import LONGEST_WAIT, decode_answer, decode_text, rename, retry_after


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
