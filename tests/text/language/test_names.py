"""Conversion of names between spellings."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.text.identifiers import apart, pieces, snake, unused
from bespeak.text.language.names import (
    hyphenated,
    is_plural,
    plural,
    singular,
    snake_case,
    stem,
    with_article,
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
    assert singular("analyzes") == "analyze"
    given = ("batchGetItem", "re-run", "dry-run-order", "getItem", "batch")
    assert [without_manner(words(name))[0] for name in given] == ["get", "rerun", "dryrun", "get", "batch"]


def test_irregular_plurals_have_a_singular_and_stay_as_plurals() -> None:
    assert [(is_plural(word), singular(word), plural(word)) for word in ("people", "children", "indices")] == [
        (True, "person", "people"),
        (True, "child", "children"),
        (True, "index", "indices"),
    ]


def test_article_follows_the_sound_and_plurals_have_none() -> None:
    things = ("user", "upload", "hour", "api key", "open orders")
    assert [with_article(thing) for thing in things] == ["a user", "an upload", "an hour", "an api key", "open orders"]


def test_name_is_put_apart_at_capitals_and_the_plural_of_an_acronym_is_one_word() -> None:
    assert apart("listAPIs HTTPStatus roomIDs") == "list APIs HTTP Status room IDs"
    assert [snake("HTTPStatus"), snake("ROOM_ID"), snake("room-type")] == ["http_status", "room_id", "room_type"]
    assert pieces("v2_roomTypes") == ["v", "room", "Types"]


def test_forms_of_a_word_in_prose_share_a_stem() -> None:
    assert len({stem(word) for word in ("cancel", "cancelled", "cancelling", "Cancel's")}) == 1
