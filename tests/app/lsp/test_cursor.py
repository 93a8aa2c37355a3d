"""The context of the cursor."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.app.lsp.places import leaves, marked
from tests.process import ROOT

from bespeak.app.lsp.cursor import ITEM, Cursor, CursorPlace, brace_place, cursor_at, flow_place, toml_place, yaml_place
from bespeak.documents.agis.canonical import format_agis
from bespeak.text.source.json_tree import JsonTree, parse_json
from bespeak.text.source.toml_tree import TomlTree, parse_toml
from bespeak.text.source.yaml_tree import YamlTree, parse_yaml


def cursor(text: str, name: str = "a.agis") -> Cursor:
    return cursor_at(*marked(text), name)


def test_a_word_is_found_around_the_cursor() -> None:
    found = cursor("method: BO|OK")
    assert (found.word, found.typed, found.start, found.end) == ("BOOK", "BO", 8, 12)
    assert found.place == CursorPlace(("method",), is_key=False)


def test_a_word_in_quotes_is_found_without_them() -> None:
    found = cursor('{"method": "BO|"}', "a.json")
    assert (found.word, found.quote, found.notation) == ("BO", '"', "json")
    assert found.place == CursorPlace(("method",), is_key=False)


@pytest.mark.parametrize(
    ("text", "name", "has_value"),
    [
        ("met|hod: BOOK", "a.agis", True),
        ("met|", "a.agis", False),
        ('{"met|": 1}', "a.json", True),
        ('{"met|"}', "a.json", False),
        ("met|hod = 1", "a.toml", True),
    ],
)
def test_a_key_is_known_to_have_its_value(text: str, name: str, has_value: bool) -> None:
    assert cursor(text, name).has_value is has_value


def test_a_comment_has_no_place() -> None:
    found = cursor("path: /book  # bespeak: ignore[P3|]")
    assert found.comment == "# bespeak: ignore[P3"
    assert found.place is None
    assert found.word == "P3"


def test_a_number_sign_in_a_string_is_not_a_comment() -> None:
    assert cursor('intent: "a # b |"').comment == ""
    assert cursor('$ref: "#/schemas/R|"').word == "#/schemas/R"


def test_a_dot_parts_words_in_toml_only() -> None:
    assert cursor("[endpoint]\nsemantic.int|", "a.toml").word == "int"
    assert cursor("version: 1.2|").word == "1.2"


DOCUMENTS = [ROOT / "docs_src/lint/rooms.agis", ROOT / "docs_src/agis/menu.agis"]


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.stem)
def test_every_value_of_a_document_is_found(file: Path) -> None:
    text = file.read_text()
    tree = parse_yaml(text, file.name)
    assert isinstance(tree, YamlTree)
    found = list(leaves(tree))
    assert len(found) > 20
    for path, start in found:
        assert yaml_place(text, start).path == path


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("|", CursorPlace((), is_key=True)),
        ("a: |", CursorPlace(("a",), is_key=False)),
        ("a:\n  |", CursorPlace(("a",), is_key=True)),
        ("a:\n  b: 1\n  |", CursorPlace(("a",), is_key=True)),
        ("a:\n  b: 1\n|", CursorPlace((), is_key=True)),
        ("a:\n  - b: 1\n    |", CursorPlace(("a", ITEM), is_key=True)),
        ("a:\n  - b: 1\n  - |", CursorPlace(("a", ITEM), is_key=True)),
        ("a:\n- b: 1\n- c: |", CursorPlace(("a", ITEM, "c"), is_key=False)),
        ("x: 1\na:\n- b: 1\n  |", CursorPlace(("a", ITEM), is_key=True)),
        ("a:\n  - - |", CursorPlace(("a", ITEM, ITEM), is_key=True)),
        ("a: [b, |", CursorPlace(("a", ITEM), is_key=True)),
        ("a: [b,\n    |c]", CursorPlace(("a", ITEM), is_key=True)),
        ("a:\n  b: { c: |", CursorPlace(("a", "b", "c"), is_key=False)),
        ("a: [b]\nc: |", CursorPlace(("c",), is_key=False)),
        ("a:\n  b: [c\n  d: |", CursorPlace(("a", "d"), is_key=False)),
        ("a:\n  b: { c: 1,\n    d: |", CursorPlace(("a", "b", "d"), is_key=False)),
        ('"a b":\n  |', CursorPlace(("a b",), is_key=True)),
        ("a: {unclosed\nb:\n  c: |", CursorPlace(("b", "c"), is_key=False)),
        ("a:\n  # c:\n\n  |", CursorPlace(("a",), is_key=True)),
        ("a:\r\n  b: 1\r\n  |", CursorPlace(("a",), is_key=True)),
    ],
)
def test_a_place_is_found_by_indentation(text: str, place: CursorPlace) -> None:
    assert yaml_place(*marked(text)) == place


@given(st.text(alphabet="ab:- []{},\"'#\n", max_size=80), st.integers(0, 80))
def test_any_text_has_a_place(text: str, offset: int) -> None:
    assert isinstance(yaml_place(text, min(offset, len(text))).path, tuple)


def test_flow_place_every_value_of_a_document_is_found() -> None:
    text = format_agis((ROOT / "docs_src/lint/rooms.agis").read_text(), "rooms.agis", "json")
    assert isinstance(text, str)
    tree = parse_json(text, "rooms.json")
    assert isinstance(tree, JsonTree)
    found = list(leaves(tree))
    assert len(found) > 20
    for path, start in found:
        place = flow_place(text, 0, start)
        assert place is not None
        assert place.path == path


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{|", CursorPlace((), is_key=True)),
        ('{"a": |', CursorPlace(("a",), is_key=False)),
        ('{"a": 1, |', CursorPlace((), is_key=True)),
        ('{"a": [1, |', CursorPlace(("a", ITEM), is_key=True)),
        ('{"a": [{"b": "}"}, {|', CursorPlace(("a", ITEM), is_key=True)),
        ("{a: {b: |", CursorPlace(("a", "b"), is_key=False)),
        ("{ a = |", CursorPlace(("a",), is_key=False)),
        ('{"a": {"b": 1}, "c": |', CursorPlace(("c",), is_key=False)),
        ("{} |", None),
        ("[1, [2]] |", None),
        ("|", None),
    ],
)
def test_a_place_is_found_while_brackets_are_open(text: str, place: CursorPlace | None) -> None:
    assert flow_place(*_arguments(text)) == place


def _arguments(text: str) -> tuple[str, int, int]:
    text, offset = marked(text)
    return text, 0, offset


@given(st.text(alphabet="{}[],:=\"'#\\ \nab", max_size=60), st.integers(0, 60))
def test_any_text_has_a_place_or_none(text: str, offset: int) -> None:
    place = flow_place(text, 0, min(offset, len(text)))
    assert place is None or isinstance(place.path, tuple)


TOML_PLACE_DOCUMENTS = sorted((ROOT / "docs_src/endpoint-files").rglob("*.toml"))


@pytest.mark.parametrize("file", TOML_PLACE_DOCUMENTS, ids=lambda file: file.stem)
def test_toml_place_every_value_of_a_document_is_found(file: Path) -> None:
    text = file.read_text()
    tree = parse_toml(text, file.name)
    assert isinstance(tree, TomlTree)
    for path, start in leaves(tree):
        place = toml_place(text, start)
        assert place is not None
        # [recipe.pattern] does not say that it is about an item of a list.
        assert [part for part in place.path if part != ITEM] == [part for part in path if part != ITEM]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("|", CursorPlace((), is_key=True)),
        ("[endpoint]\n|", CursorPlace(("endpoint",), is_key=True)),
        ("[endpoint]\nmethod = |", CursorPlace(("endpoint", "method"), is_key=False)),
        ("[endpoint]\nsemantic.|", CursorPlace(("endpoint", "semantic"), is_key=True)),
        ("[[endpoint.output]]\n|", CursorPlace(("endpoint", "output", ITEM), is_key=True)),
        ("[a]\nb = [1, |", CursorPlace(("a", "b", ITEM), is_key=True)),
        ('[a]\nb = [\n  "x",\n  |\n]', CursorPlace(("a", "b", ITEM), is_key=True)),
        ("[a]\nb = { c = |", CursorPlace(("a", "b", "c"), is_key=False)),
        ("[a]\nb = [1]\n|", CursorPlace(("a",), is_key=True)),
        ('[handlers."BOOK /room"]\n|', CursorPlace(("handlers", "BOOK /room"), is_key=True)),
        ("[a|", None),
    ],
)
def test_a_place_is_found_by_its_header_and_key(text: str, place: CursorPlace | None) -> None:
    assert toml_place(*marked(text)) == place


@given(st.text(alphabet="ab.=[]{},\"'#\n ", max_size=80), st.integers(0, 80))
def test_toml_place_any_text_has_a_place_or_none(text: str, offset: int) -> None:
    place = toml_place(text, min(offset, len(text)))
    assert place is None or isinstance(place.path, tuple)


ENDPOINT = ("endpoints", ITEM)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("|", CursorPlace((), is_key=True)),
        ("agis: |", CursorPlace(("agis",), is_key=False)),
        ("BOOK /room {\n  |", CursorPlace(ENDPOINT, is_key=True)),
        ("BOOK /room/{id} {\n  |", CursorPlace(ENDPOINT, is_key=True)),
        ("BOOK /room {\n  semantic {\n    actor: |", CursorPlace((*ENDPOINT, "semantic", "actor"), is_key=False)),
        ("BOOK /room {\n  semantic {\n    actor: agent\n  }\n  |", CursorPlace(ENDPOINT, is_key=True)),
        ("BOOK /room {\n}\n|", CursorPlace((), is_key=True)),
        ("BOOK /room { semantic { actor: |", CursorPlace((*ENDPOINT, "semantic", "actor"), is_key=False)),
        (
            'vocabulary {\n  declared_verbs: ["BOOK", |',
            CursorPlace(("vocabulary", "declared_verbs", ITEM), is_key=True),
        ),
        (
            "vocabulary {\n  declared_verbs:\n    - BOOK\n    - |",
            CursorPlace(("vocabulary", "declared_verbs", ITEM), is_key=True),
        ),
        ('BOOK /room {\n  intent: "a } b"\n  |', CursorPlace(ENDPOINT, is_key=True)),
        ("# BOOK /room {\n|", CursorPlace((), is_key=True)),
    ],
)
def test_a_place_is_found_by_the_blocks_that_are_open(text: str, place: CursorPlace) -> None:
    assert brace_place(*marked(text)) == place


@given(st.text(alphabet='AB /{}[]:-"#\n ', max_size=80), st.integers(0, 80))
def test_brace_place_any_text_has_a_place(text: str, offset: int) -> None:
    assert isinstance(brace_place(text, min(offset, len(text))).path, tuple)
