"""The context of the cursor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.app.lsp.places import leaves, marked
from tests.cases import rows
from tests.process import ROOT

from bespeak.app.lsp.cursor import ITEM, Cursor, CursorPlace, brace_place, cursor_at, flow_place, toml_place, yaml_place
from bespeak.documents.agis.canonical import format_agis
from bespeak.text.source.json_tree import parse_json
from bespeak.text.source.toml_tree import parse_toml
from bespeak.text.source.yaml_tree import parse_yaml


def cursor(text: str, name: str = "a.agis") -> Cursor:
    return cursor_at(*marked(text), name)


def test_word_is_found_around_the_cursor_without_quotes_and_parted_by_dots_in_toml_only() -> None:
    found = cursor("method: BO|OK")
    assert (found.word, found.typed, found.start, found.end) == ("BOOK", "BO", 8, 12)
    assert found.place == CursorPlace(("method",), is_key=False)
    found = cursor('{"method": "BO|"}', "a.json")
    assert (found.word, found.quote, found.notation) == ("BO", '"', "json")
    assert found.place == CursorPlace(("method",), is_key=False)
    assert cursor("[endpoint]\nsemantic.int|", "a.toml").word == "int"
    assert cursor("version: 1.2|").word == "1.2"


@rows(
    "text, name, has_value",
    ("met|hod: BOOK", "a.agis", True),
    ("met|", "a.agis", False),
    ('{"met|": 1}', "a.json", True),
    ('{"met|"}', "a.json", False),
    ("met|hod = 1", "a.toml", True),
)
def test_a_key_is_known_to_have_its_value(text: str, name: str, has_value: bool) -> None:
    assert cursor(text, name).has_value is has_value


def test_comment_has_no_place_and_a_number_sign_in_a_string_is_not_a_comment() -> None:
    found = cursor("path: /book  # bespeak: ignore[P3|]")
    assert found.comment == "# bespeak: ignore[P3"
    assert (found.place, found.word) == (None, "P3")
    assert cursor('intent: "a # b |"').comment == ""
    assert cursor('$ref: "#/schemas/R|"').word == "#/schemas/R"


@rows(
    "text, place",
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
)
def test_a_place_is_found_by_indentation(text: str, place: CursorPlace) -> None:
    assert yaml_place(*marked(text)) == place


@rows(
    "text, place",
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
)
def test_a_place_is_found_while_brackets_are_open(text: str, place: CursorPlace | None) -> None:
    assert in_brackets(*marked(text)) == place


@rows(
    "text, place",
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
)
def test_a_place_is_found_by_its_header_and_key(text: str, place: CursorPlace | None) -> None:
    assert toml_place(*marked(text)) == place


ENDPOINT = ("endpoints", ITEM)
VERBS = ("vocabulary", "declared_verbs", ITEM)


@rows(
    "text, place",
    ("|", CursorPlace((), is_key=True)),
    ("agis: |", CursorPlace(("agis",), is_key=False)),
    ("BOOK /room {\n  |", CursorPlace(ENDPOINT, is_key=True)),
    ("BOOK /room/{id} {\n  |", CursorPlace(ENDPOINT, is_key=True)),
    ("BOOK /room {\n  semantic {\n    actor: |", CursorPlace((*ENDPOINT, "semantic", "actor"), is_key=False)),
    ("BOOK /room {\n  semantic {\n    actor: agent\n  }\n  |", CursorPlace(ENDPOINT, is_key=True)),
    ("BOOK /room {\n}\n|", CursorPlace((), is_key=True)),
    ("BOOK /room { semantic { actor: |", CursorPlace((*ENDPOINT, "semantic", "actor"), is_key=False)),
    ('vocabulary {\n  declared_verbs: ["BOOK", |', CursorPlace(VERBS, is_key=True)),
    ("vocabulary {\n  declared_verbs:\n    - BOOK\n    - |", CursorPlace(VERBS, is_key=True)),
    ('BOOK /room {\n  intent: "a } b"\n  |', CursorPlace(ENDPOINT, is_key=True)),
    ("# BOOK /room {\n|", CursorPlace((), is_key=True)),
)
def test_a_place_is_found_by_the_blocks_that_are_open(text: str, place: CursorPlace) -> None:
    assert brace_place(*marked(text)) == place


def in_brackets(text: str, offset: int) -> CursorPlace | None:
    return flow_place(text, 0, offset)


PLACES: list[tuple[Callable[[str, int], CursorPlace | None], str]] = [
    (yaml_place, "ab:- []{},\"'#\n"),
    (in_brackets, "{}[],:=\"'#\\ \nab"),
    (toml_place, "ab.=[]{},\"'#\n "),
    (brace_place, 'AB /{}[]:-"#\n '),
]


@given(
    st.sampled_from(PLACES).flatmap(lambda one: st.tuples(st.just(one[0]), st.text(one[1], max_size=80))),
    st.integers(0, 80),
)
def test_any_text_has_a_place_or_none(found: tuple[Callable[[str, int], CursorPlace | None], str], offset: int) -> None:
    place, text = found
    made = place(text, min(offset, len(text)))
    assert isinstance(made.path, tuple) if made or place in (yaml_place, brace_place) else made is None  # type: ignore[union-attr]


ROOMS, MENU = ROOT / "docs_src/lint/rooms.agis", ROOT / "docs_src/agis/menu.agis"
TOML = sorted((ROOT / "docs_src/endpoint-files").rglob("*.toml"))
JSON = format_agis(ROOMS.read_text(), "rooms.agis", "json")


@rows(
    "text, parse, place",
    *((file.read_text(), parse_yaml, yaml_place) for file in (ROOMS, MENU)),
    (JSON, parse_json, in_brackets),
    *((file.read_text(), parse_toml, toml_place) for file in TOML),
)
def test_every_value_of_a_document_is_found(text: str, parse: Any, place: Any) -> None:
    found = list(leaves(parse(text, "rooms")))
    assert len(found) > (0 if parse is parse_toml else 20)
    for path, start in found:
        here = place(text, start).path
        # [recipe.pattern] does not say that it is about an item of a list.
        skipped = (ITEM,) if parse is parse_toml else ()
        assert [part for part in here if part not in skipped] == [part for part in path if part not in skipped]
