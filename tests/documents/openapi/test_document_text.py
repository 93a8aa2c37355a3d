"""The notation of a description is detected by its content, and invalid text is refused with a reason."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.documents.openapi import document_text
from bespeak.documents.openapi.description import MOST_BYTES
from bespeak.documents.openapi.document_text import DescriptionFile, Notices, Spot, YamlReader, parse_document
from bespeak.documents.rules import BROKEN_REFERENCE, NOT_IMPORTED, SCHEMA_PART_DROPPED
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.tree import Location, NotationError

DATA: dict[str, Any] = {"openapi": "3.1.0", "paths": {"/a b": {"get": {"responses": {"200": {}}}}}}


@pytest.mark.parametrize("name", ["api.json", "api.yaml", "https://x.example/api"])
@pytest.mark.parametrize("text", [json.dumps(DATA), json.dumps(DATA).encode(), "\ufeff " + json.dumps(DATA, indent=2)])
def test_json_is_recognised_by_its_first_character(name: str, text: str | bytes) -> None:
    document, found = parse_document(text, name)
    assert (document.data, document.name, found) == (DATA, name, [])


def test_everything_else_is_yaml() -> None:
    document, _ = parse_document("openapi: 3.1.0\npaths:\n  /a b:\n    get: {responses: {200: {}}}\n", "api.json")
    assert document.data == DATA
    assert str(document.locate("/paths/~1a b/get/nothing")) == "api.json:4:10"
    assert str(document.locate("")) == "api.json:1:1"


def test_only_short_json_texts_have_line_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(DATA, indent=1)
    document, _ = parse_document(text, "api.json")
    assert document.locate("/paths/~1a b/get").line == 5
    monkeypatch.setattr(document_text, "_PLACED", 10)
    document, _ = parse_document(text, "api.json")
    assert str(document.locate("/paths/~1a b/get")) == "api.json"


@rows(
    "text, rule, reason",
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
)
def test_invalid_text_is_refused_with_its_location(text: str | bytes, rule: str, reason: str) -> None:
    document, found = parse_document(text, "https://x.example/api")
    assert document is None
    assert [finding.rule for finding in found] == [rule]
    assert reason in found[0].message
    assert found[0].location.file == "https://x.example/api"


def test_30_megabytes_are_read_and_40_are_not() -> None:
    filler = "x" * 1000
    text = '{"paths": {}, "x-a": [' + ",".join([f'"{filler}"'] * 30_000) + "]}"
    document, found = parse_document(text, "api.json")
    assert document is not None
    assert found == []
    document, found = parse_document(b" " * (MOST_BYTES + 1), "api.json")
    assert document is None
    assert [finding.rule for finding in found] == ["D101"]


@pytest.mark.parametrize("text", ['{"a": 1, "b": {"c": 1,\n "c": 2}}', "b: {c: 1,\n c: 2}\n"])
def test_duplicate_key_is_reported(text: str) -> None:
    document, found = parse_document(text, "api")
    assert document.data["b"] == {"c": 2}
    assert [(finding.rule, finding.severity, finding.location and finding.location.line) for finding in found] == [
        ("D109", "warning", 2)
    ]


def read(text: str) -> YamlReader:
    return YamlReader().read(text)


@rows(
    "text, data",
    ("200: ok\n'404': no\n", {"200": "ok", "404": "no"}),
    ("on: off\nyes: no\ny: n\n", {"on": "off", "yes": "no", "y": "n"}),
    ("2026-11-16: 2026-11-16\n1.0: 1.0\nnull: null\n", {"2026-11-16": "2026-11-16", "1.0": 1.0, "null": None}),
    ("a: True\nb: FALSE\nc: Null\nd: ~\ne:\n", {"a": True, "b": False, "c": None, "d": None, "e": None}),
    (
        "a: 'true'\nb: \"1\"\nc: !!str 1\nd: 0x1F\ne: 1_000\n",
        {"a": "true", "b": "1", "c": "1", "d": 31, "e": "1_000"},
    ),
    ("a: |\n  1\n  2\n", {"a": "1\n2\n"}),
    ("base: &b {x: 1, y: 2}\nmade:\n  <<: *b\n  y: 3\n", {"base": {"x": 1, "y": 2}, "made": {"y": 3, "x": 1}}),
    ("a: &a 1\nb: &b 2\nm: {<<: [{c: *a}, {c: *b, d: 4}]}\n", {"a": 1, "b": 2, "m": {"c": 1, "d": 4}}),
    ("k: &k name\n*k : 1\n", {"k": "name", "name": 1}),
    ("- [1, {a: b}]\n- []\n", [[1, {"a": "b"}], []]),
    ("# nothing\n", None),
)
def test_values_are_read_as_intended(text: str, data: Any) -> None:
    assert read(text).data == data


# PyYAML writes by YAML 1.1 and leaves these texts unquoted, which are numbers in YAML 1.2.
NUMBERS_IN_1_2 = re.compile(r"[-+]?[.0-9]+[eE][-+]?[0-9]+|0o[0-7]+")

json_data = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(st.characters(codec="utf-8", exclude_categories=("C",)), max_size=8).filter(
        lambda text: NUMBERS_IN_1_2.fullmatch(text) is None
    ),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abcd012/{}$", min_size=1, max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(json_data)
def test_written_data_is_read_back(data: Any) -> None:
    assert read(yaml.safe_dump(data, allow_unicode=True)).data == data


def test_collections_have_locations_repeated_keys_are_reported_and_aliases_shared() -> None:
    reader = read("a:\n  b:\n    - c\n")
    assert (reader.places[id(reader.data["a"])], reader.places[id(reader.data["a"]["b"])]) == ((2, 3), (3, 5))
    reader = read("a: 1\nb: 2\na: 3\n")
    assert (reader.data, reader.repeated) == ({"a": 3, "b": 2}, [("a", 3, 1)])
    data = read("a: &a {b: 1}\nc: [*a, *a]\n").data
    assert data["c"][0] is data["c"][1] is data["a"]
    assert document_text.MAX_EXPANDED < 10**6


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


@rows(
    "text, reason",
    (BOMB, "aliases expand this document to more than"),
    ("a: &a [*a]\n", "inside its own anchor"),
    ("a: *b\n", "not there"),
    ("[" * 300 + "]" * 300, "nested more than"),
    ("? [a]\n: b\n", "used as a key"),
    ("a: &a [1]\n*a : 1\n", "as a key"),
    ("a: 1\n---\nb: 2\n", "several documents"),
    (f"a: {'9' * 5000}\n", "digits"),
)
def test_yaml_that_is_not_data_is_refused(text: str, reason: str) -> None:
    with pytest.raises(NotationError) as refused:
        read(text)
    assert reason in refused.value.message


FLAGS = {"yes": "yes", "off": "OFF", "true": True, "n": 7}
SPOT_DATA: dict[str, Any] = {"a": [{"b/c": 1}], "x-note": 1, "version": 3.1, **FLAGS}
ROOT = Spot(SPOT_DATA, DescriptionFile("api.json", SPOT_DATA, lambda _: Location("api.json")))


@rows(
    "parts, value, at",
    (("a", 0, "b/c"), 1, "/a/0/b~1c"),
    (("a", 5), None, "/a/5"),
    (("a", "0"), None, "/a/0"),
    (("version", "a", "b"), None, "/version/a/b"),
    ((), SPOT_DATA, ""),
)
def test_value_below_a_key_is_found_or_none(parts: tuple[Any, ...], value: Any, at: str) -> None:
    spot = ROOT.below(*parts)
    assert (spot.value, spot.at) == (value, at)


def test_extensions_are_not_entries_and_scalars_have_no_parts() -> None:
    assert "x-note" not in dict(ROOT.entries())
    assert list(ROOT.below("n").entries()) == []
    assert list(ROOT.below("n").items()) == []
    assert [spot.at for spot in ROOT.below("a").items()] == ["/a/0"]


@pytest.mark.parametrize(("key", "text"), [("version", "3.1"), ("yes", "yes"), ("true", ""), ("a", ""), ("none", "")])
def test_a_number_can_be_read_as_text(key: str, text: str) -> None:
    assert ROOT.text(key) == text


@pytest.mark.parametrize(("key", "flag"), [("yes", True), ("off", False), ("true", True), ("n", None), ("none", None)])
def test_a_boolean_may_be_a_word_of_yaml_1_1(key: str, flag: bool | None) -> None:
    assert ROOT.flag(key) is flag
    assert Spot(1, ROOT.document).flag(key) is None


NOTICES_ROOT = Spot({}, DescriptionFile("api.json", {}, lambda at: Location("api.json", len(at) + 1)))


def test_many_findings_of_one_rule_are_shown_in_part_and_counted() -> None:
    notices = Notices("api.json")
    for number in range(500):
        notices.warning(SCHEMA_PART_DROPPED, "left out", NOTICES_ROOT.below(str(number)))
    notices.error(BROKEN_REFERENCE, "leads nowhere", NOTICES_ROOT)
    found = notices.all()
    assert len(found) == 12
    assert "490 more findings of D163" in found[-1].message
    assert found[-1].severity == "warning"


def test_duplicate_finding_is_reported_once_behind_those_of_the_text_reader() -> None:
    notices = Notices("api.json")
    finding = Diagnostic("D109", "warning", "twice")
    notices.pass_on([finding])
    for _ in range(3):
        notices.info(NOT_IMPORTED, "not imported", NOTICES_ROOT.below("a"))
    first, second = notices.all()
    assert (first, second.pointer, str(second.location)) == (finding, "/a", "api.json:3")
