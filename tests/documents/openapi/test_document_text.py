"""The notation of a description is detected by its content, and invalid text is refused with a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bespeak.documents.openapi import document_text
from bespeak.documents.openapi.document_text import parse_document

DATA: dict[str, Any] = {"openapi": "3.1.0", "paths": {"/a b": {"get": {"responses": {"200": {}}}}}}


@pytest.mark.parametrize("name", ["api.json", "api.yaml", "https://x.example/api"])
@pytest.mark.parametrize("text", [json.dumps(DATA), json.dumps(DATA).encode(), "\ufeff " + json.dumps(DATA, indent=2)])
def test_json_is_recognised_by_its_first_character(name: str, text: str | bytes) -> None:
    document, found = parse_document(text, name)
    assert document is not None
    assert (document.data, document.name, found) == (DATA, name, [])


def test_everything_else_is_yaml() -> None:
    document, _ = parse_document("openapi: 3.1.0\npaths:\n  /a b:\n    get: {responses: {200: {}}}\n", "api.json")
    assert document is not None
    assert document.data == DATA
    assert str(document.locate("/paths/~1a b/get/nothing")) == "api.json:4:10"
    assert str(document.locate("")) == "api.json:1:1"


def test_only_short_json_texts_have_line_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(DATA, indent=1)
    document, _ = parse_document(text, "api.json")
    assert document is not None
    assert document.locate("/paths/~1a b/get").line == 5
    monkeypatch.setattr(document_text, "_PLACED", 10)
    document, _ = parse_document(text, "api.json")
    assert document is not None
    assert str(document.locate("/paths/~1a b/get")) == "api.json"


@pytest.mark.parametrize(
    ("text", "rule", "reason"),
    [
        ('{"a": 1', "D102", "not JSON"),
        ('{"a": 1e999}', "D102", "not JSON"),
        ("[1]", "D104", "not an object"),
        ("a: [1\n", "D102", "not YAML"),
        ("just words", "D104", "not an object"),
        ("", "D104", "not an object"),
        ("a: \x01", "D102", "not YAML"),
        (b"a: \xff\xfe", "D101", "not UTF-8"),
        ("\ud800", "D101", "not UTF-8"),
        ('{"a":' + "[" * 100_000, "D102", "nested"),
        ("a: *a\n", "D102", "alias"),
    ],
)
def test_invalid_text_is_refused_with_its_location(text: str | bytes, rule: str, reason: str) -> None:
    document, found = parse_document(text, "https://x.example/api")
    assert document is None
    assert [finding.rule for finding in found] == [rule]
    assert reason in found[0].message
    assert found[0].location is not None
    assert found[0].location.file == "https://x.example/api"


def test_30_megabytes_are_read_and_40_are_not() -> None:
    filler = "x" * 1000
    text = '{"paths": {}, "x-a": [' + ",".join([f'"{filler}"'] * 30_000) + "]}"
    document, found = parse_document(text, "api.json")
    assert document is not None
    assert found == []
    document, found = parse_document(b" " * (document_text.MAX_BYTES + 1), "api.json")
    assert document is None
    assert [finding.rule for finding in found] == ["D101"]


@pytest.mark.parametrize("text", ['{"a": 1, "b": {"c": 1,\n "c": 2}}', "b: {c: 1,\n c: 2}\n"])
def test_duplicate_key_is_reported(text: str) -> None:
    document, found = parse_document(text, "api")
    assert document is not None
    assert document.data["b"] == {"c": 2}
    assert [(finding.rule, finding.severity, finding.location and finding.location.line) for finding in found] == [
        ("D109", "warning", 2)
    ]
