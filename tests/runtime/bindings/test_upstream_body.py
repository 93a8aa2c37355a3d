from __future__ import annotations

from base64 import b64encode
from typing import Any
from urllib.parse import parse_qsl

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.echo import parts_of

from bespeak.contract.schema.validation import Violation
from bespeak.runtime.bindings.upstream_request import Field, form_body, json_body, multipart_body

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = TEXT | st.integers(-(2**53), 2**53) | st.booleans()


def fields(values: dict[str, Any], style: str = "repeat") -> dict[str, Field]:
    return {name: Field(name, value, style) for name, value in values.items()}


def received(values: dict[str, Any], *files: str) -> list[tuple[str | None, str | None, bytes]]:
    """Parse the parts as the upstream would."""
    faults: list[Violation] = []
    parts = multipart_body(fields(values), files, faults)
    assert faults == []
    request = httpx.Request("POST", "https://upstream.example/", files=parts)
    return parts_of(request.headers["content-type"], request.read())


def refused(values: dict[str, Any], *files: str) -> list[str]:
    faults: list[Violation] = []
    multipart_body(fields(values), files, faults)
    return [fault.pointer for fault in faults]


def test_a_form_has_texts_repeated_lists_and_objects_as_json() -> None:
    body = form_body(fields({"a": "x y&z", "b": True, "c": [1, 2], "d": {"e": "é"}, "f": None}), [])
    assert body == b"a=x%20y%26z&b=true&c=1&c=2&d=%7B%22e%22%3A%22%C3%A9%22%7D"


@given(st.dictionaries(TEXT, VALUES | st.lists(VALUES, max_size=3), max_size=6))
def test_a_form_is_decoded_to_the_same_fields(values: dict[str, Any]) -> None:
    sent = [
        (name, item if isinstance(item, str) else msgspec.json.encode(item).decode())
        for name, value in values.items()
        for item in (value if isinstance(value, list) else [value])
    ]
    read = parse_qsl(form_body(fields(values), []).decode("ascii"), keep_blank_values=True, errors="strict")
    assert read == sent


@given(st.dictionaries(TEXT, VALUES | st.lists(VALUES, max_size=3) | st.none(), max_size=6))
def test_json_is_the_object_itself(values: dict[str, Any]) -> None:
    assert msgspec.json.decode(json_body(fields(values))) == values


def test_a_multipart_body_has_files_and_texts() -> None:
    content = bytes(range(256))
    parts = received({"photo": b64encode(content).decode(), "title": "Zimmer 12 – süß", "n": 2, "gone": None}, "photo")
    assert parts == [
        ("photo", "photo", content),
        ("title", None, "Zimmer 12 – süß".encode()),
        ("n", None, b"2"),
    ]


def test_several_files_and_texts_are_several_parts_of_one_name() -> None:
    parts = received({"photo": ["YQ==", "Yg=="], "tags": ["x", "y"], "meta": {"a": 1}}, "photo")
    assert [(name, content) for name, _, content in parts] == [
        ("photo", b"a"),
        ("photo", b"b"),
        ("tags", b"x"),
        ("tags", b"y"),
        ("meta", b'{"a":1}'),
    ]


@pytest.mark.parametrize("value", ["no base64!", "YQ", "YQ=", "ä", 3, True, {"a": 1}, "Y Q=="])
def test_a_file_that_is_not_base64_is_refused_with_its_pointer(value: Any) -> None:
    assert refused({"photo": value}, "photo") == ["/photo"]
    assert refused({"photo": ["YQ==", value]}, "photo") == ["/photo/1"]


@given(st.binary(max_size=200), TEXT)
def test_no_content_ends_its_part(content: bytes, text: str) -> None:
    # Whatever looks like a boundary or a header inside of a part stays there.
    hostile = b"\r\n--boundary--\r\nContent-Disposition: form-data; name=evil\r\n\r\n" + content
    parts = received({"photo": b64encode(hostile).decode(), "title": hostile.decode("latin-1") + text}, "photo")
    assert parts == [
        ("photo", "photo", hostile),
        ("title", None, (hostile.decode("latin-1") + text).encode()),
    ]


@pytest.mark.parametrize("name", ['a"; filename="evil', "a\r\nX-Evil: 1", "ä"])
def test_no_name_leaves_its_place(name: str) -> None:
    request = httpx.Request("POST", "https://u.example/", files=multipart_body(fields({name: "x"}), (), []))
    head = request.read().partition(b"\r\n\r\n")[0]
    assert head.count(b"\r\n") == 1
    assert b'filename="' not in head
