"""Decoding of JSON that refuses repeated keys."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.text.reading.json_data import RepeatedKeyError, decode_as, decode_json

CLEAN = [
    *(b"{}", b"[]", b'"a:b"', b'{"a": 1}', b'{"at": "2026-11-16T10:00:00Z", "url": "https://a.example/:x"}'),
    *(b'{"a" : 1, "b"\n: {"a"\t:2}}', b'{"a": "\\": \\":", "b": " : :"}', b'[{"a": 1}, {"a": 2}, {"b": {"a": 3}}]'),
    b'{"": 1, ":": 2, "\\":": 3, " :": 4}',
    '{"é": 1, "e\u0301": 2}'.encode(),
]
REPEATED = [
    (b'{"a":1,"a":2}', "'a'", 7),
    (b'{"a":1,"a" :2}', "'a'", 7),
    (b'{"a":"x:y","a"\n:2,"b":1}', "'a'", 11),
    (b'{"a":1,"\\u0061":1}', "'a'", 7),
    (b'{"b":{"c":[{"a":1,"a":1}]}}', "'a'", 18),
    (b'[0, {"":1,"":2}]', "''", 10),
    ('{"é":"ü:","é":1}'.encode(), "'é'", 12),
    (b'{"a":1,"a":2,"x":"' + b":" * 50 + b'"}', "'a'", 7),
]


@pytest.mark.parametrize("data", CLEAN)
def test_text_without_repeated_keys_is_decoded(data: bytes) -> None:
    assert decode_json(data) == decode_json(data.decode()) == decode_json(bytearray(data)) == json.loads(data)


@pytest.mark.parametrize(("data", "key", "place"), REPEATED)
def test_repeated_key_is_refused_with_key_and_place(data: bytes, key: str, place: int) -> None:
    with pytest.raises(RepeatedKeyError) as caught:
        decode_json(data)
    assert str(caught.value) == f"the key {key} is repeated in one object (byte {place})"


def test_repeated_key_is_shown_alone_and_shortened() -> None:
    with pytest.raises(RepeatedKeyError) as caught:
        decode_json(b'{"a":"%b","b":{"c":1,"c":2}}' % (b"x" * 100_000))
    assert str(caught.value) == "the key 'c' is repeated in one object"
    key = b'"' + b"k" * 500 + b'"'
    with pytest.raises(RepeatedKeyError) as caught:
        decode_json(b"{%b:1,%b:2}" % (key, key))
    assert len(str(caught.value)) < 150


@rows(
    "data",
    *(b"\xef\xbb\xbf{}", b"NaN", b"-Infinity", b"1e400", b"{} {}", b'"\xff"', b'"\xed\xa0\x80"', b'"\\ud800"'),
    *(b'{"\\udc00": 1}', b"{'a': 1}", b'{"a": 1,}', b"// a\n1"),
    "{}".encode("utf-16"),
    b"",
)
def test_text_that_readers_take_differently_is_refused(data: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeError)):
        decode_json(data)


def test_typed_decoding_refuses_repeated_keys_also_below_ignored_members() -> None:
    class Claims(msgspec.Struct):
        sub: str

    decoder = msgspec.json.Decoder(Claims)
    assert decode_as(decoder, b'{"sub":"a","more":{"x":1}}') == Claims("a")
    for data in (b'{"sub":"a","sub":"b"}', b'{"sub":"a","more":{"x":1,"x":2}}'):
        with pytest.raises(RepeatedKeyError):
            decode_as(decoder, data)


texts = st.text(st.sampled_from('ab:"\\ \n\u00e9'), max_size=4)
values = st.recursive(
    texts | st.integers(0, 9) | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.lists(st.tuples(texts, inner), max_size=4).map(tuple),
    max_leaves=12,
)


def _write(value: Any, space: str) -> tuple[str, bool]:
    """Write a value, with objects as tuples of pairs; return the text, and True if a key is repeated."""
    if isinstance(value, tuple):
        members = [(json.dumps(key, ensure_ascii=False), *_write(item, space)) for key, item in value]
        text = ",".join(f"{key}{space}:{space}{item}" for key, item, _ in members)
        return f"{{{text}}}", len(dict(value)) < len(value) or any(repeats for _, _, repeats in members)
    if isinstance(value, list):
        items = [_write(item, space) for item in value]
        return f"[{','.join(text for text, _ in items)}]", any(repeats for _, repeats in items)
    return json.dumps(value, ensure_ascii=False), False


@given(values, st.sampled_from(["", " ", "\n", "\t", "\r"]))
def test_exactly_the_texts_with_a_repeated_key_are_refused(value: Any, space: str) -> None:
    text, repeats = _write(value, space)
    if not repeats:
        assert decode_json(text) == json.loads(text)
        return
    with pytest.raises(RepeatedKeyError):
        decode_json(text)
