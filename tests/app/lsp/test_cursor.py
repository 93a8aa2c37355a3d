"""The context of the cursor."""

from __future__ import annotations

import pytest
from tests.app.lsp.places import marked

from bespeak.app.lsp.cursor import Cursor, Place, cursor_at


def cursor(text: str, name: str = "a.agis") -> Cursor:
    return cursor_at(*marked(text), name)


def test_a_word_is_found_around_the_cursor() -> None:
    found = cursor("method: BO|OK")
    assert (found.word, found.typed, found.start, found.end) == ("BOOK", "BO", 8, 12)
    assert found.place == Place(("method",), is_key=False)


def test_a_word_in_quotes_is_found_without_them() -> None:
    found = cursor('{"method": "BO|"}', "a.json")
    assert (found.word, found.quote, found.notation) == ("BO", '"', "json")
    assert found.place == Place(("method",), is_key=False)


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
