"""Conversion of names between spellings."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.text.identifiers import unused
from bespeak.text.language.names import (
    hyphenated,
    is_plural,
    plural,
    singular,
    snake_case,
    without_manner,
    words,
)


@rows(
    "text, name",
    ("petId", "pet_id"),
    ("X-Trace-Id", "x_trace_id"),
    ("filter[name]", "filter_name"),
    ("$top", "top"),
    ("HTTPServer", "http_server"),
    ("2fa", "field_2fa"),
    ("日本", "field"),
    ("", "field"),
    ("already_snake", "already_snake"),
)
def test_a_field_is_named_in_snake_case(text: str, name: str) -> None:
    assert snake_case(text) == name


@given(st.text(max_size=200))
def test_every_text_becomes_an_identifier_and_a_segment(text: str) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*", snake_case(text))
    assert re.fullmatch(r"(?:[a-z0-9]+(?:-[a-z0-9]+)*)?", hyphenated(text))


@rows(
    "one, several",
    ("order", "orders"),
    ("city", "cities"),
    ("search", "searches"),
    ("day", "days"),
    ("emoji", "emojis"),
    ("cache", "caches"),
    ("movie", "movies"),
)
def test_nouns_have_plurals(one: str, several: str) -> None:
    assert plural(one) == several
    assert plural(several) == several
    assert singular(several) == one
    assert is_plural(several)
    assert not is_plural(one)


@pytest.mark.parametrize("word", ["status", "address", "analysis", "news", "series"])
def test_words_that_only_look_like_plurals_are_not_plural(word: str) -> None:
    assert not is_plural(word)
    assert singular(word) == word


def test_names_are_numbered_split_and_spelled_plainly_with_the_verb_after_its_manner() -> None:
    assert unused("id", {"id", "id_2"}) == "id_3"
    assert unused("id", ()) == "id"
    assert words("createPet") == words("create_pet") == words("create-pet") == ("create", "pet")
    assert words("unSuspendUser") == ("unsuspend", "user")
    assert hyphenated("Aufträge") == "auftraege"
    assert hyphenated("año-été") == "ano-ete"
    assert singular("statuses") == "status"
    given = ("batchGetItem", "re-run", "dry-run-order", "getItem", "batch")
    assert [without_manner(words(name))[0] for name in given] == ["get", "rerun", "dryrun", "get", "batch"]
