"""Look-up of verbs in a catalog."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.contract.catalog.catalog import NearWords, Verb, Version, common_version, parse_version
from bespeak.contract.catalog.document import load_bundled


def test_near_verbs_are_suggested_for_a_typo_and_none_for_a_text_far_too_long() -> None:
    assert load_bundled().near("RESERV")[0] == "RESERVE"
    assert load_bundled().near("BOOK" * 5_000) == []


def test_verbs_of_english_lead_to_verbs_that_mean_the_same_and_not_to_those_spelt_alike() -> None:
    assert {"PURGE", "REMOVE"} <= set(load_bundled().suggest("ERASE"))
    for found in (load_bundled().suggest("ERASE"), load_bundled().near("ERASE")):
        assert "LEASE" not in found
    assert load_bundled().near("CEASE") == []
    assert "STOP" in load_bundled().suggest("CEASE")
    assert load_bundled().suggest("RESERV") == load_bundled().near("RESERV")
    assert load_bundled().suggest("GET") == load_bundled().near("GET")


@pytest.mark.parametrize(("legacy", "preferred"), [("GET", "FETCH"), ("post", "CREATE"), ("Delete", "REMOVE")])
def test_the_preferred_verb_is_suggested_for_a_legacy_verb(legacy: str, preferred: str) -> None:
    assert load_bundled().near(legacy) == [preferred]


def test_category_holds_primary_and_secondary_members_and_an_unknown_one_none() -> None:
    names = [verb.name for verb in load_bundled("1.0.0").verbs_in("retrieval")]
    assert "FETCH" in names
    assert "ENUMERATE" in names
    assert len(names) == 34
    assert load_bundled().verbs_in("poetry") == []


@pytest.mark.requirement("API-4.4-2")
@rows(
    "verb, warning",
    (Verb(name="OLD", categories=(), description=""), None),
    (Verb(name="OLD", categories=(), description="", deprecated_in="1.1.0"), "deprecated"),
    (
        Verb(name="OLD", categories=(), description="", deprecated_in="1.1.0", removed_in="2.0.0"),
        "deprecated; removed_in=2.0.0",
    ),
    (
        Verb(name="OLD", categories=(), description="", deprecated_in="1.1.0", removed_in="2.0.0", successor="NEW"),
        "deprecated; successor=NEW; removed_in=2.0.0",
    ),
)
def test_the_warning_names_only_what_the_catalog_declares(verb: Verb, warning: str | None) -> None:
    assert verb.warning == warning


def test_only_a_deprecated_verb_has_a_deprecation_in_its_json() -> None:
    assert load_bundled().verbs["DELEGATE"].to_json() == {
        "name": "DELEGATE",
        "categories": ["mechanics"],
        "description": "Hand a task to another agent with bounded authority",
    }
    entry = load_bundled("1.1.0").verbs["AUDITLOG"].to_json()
    assert (entry["deprecated_in"], entry["removed_in"], entry["successor"]) == ("1.1.0", "2.0.0", "LOG")


numbers = st.integers(0, 999_999_999)


@given(numbers, numbers, numbers)
def test_version_is_parsed_as_written(major: int, minor: int, patch: int) -> None:
    assert parse_version(f"{major}.{minor}.{patch}") == Version(major, minor, patch)


@given(st.text(max_size=40))
def test_any_text_is_a_version_or_none(text: str) -> None:
    version = parse_version(text)
    assert version is None or text.startswith(f"{version.major}.{version.minor}.{version.patch}")


@pytest.mark.parametrize(
    "text", ["", "1", "1.0", "1.0.0.0", "01.0.0", "v1.0.0", "1.0.0\n", "1.0.-1", "١.0.0", "1.0." + "9" * 50]
)
def test_invalid_version_is_none(text: str) -> None:
    assert parse_version(text) is None


def test_versions_compare_by_number_not_by_text() -> None:
    ten, nine = parse_version("1.10.0"), parse_version("1.9.0")
    assert ten is not None
    assert nine is not None
    assert ten > nine


@pytest.mark.requirement("API-4.6-2", "API-4.6-3")
def test_preferred_common_version_wins_then_the_highest_and_without_overlap_there_is_none() -> None:
    assert common_version("1.0.0", ["1.0.0", "1.1.0"], ["1.1.0", "1.0.0"]) == "1.0.0"
    assert common_version("2.0.0", ["1.9.0", "1.10.0", "2.0.0"], ["1.9.0", "1.10.0"]) == "1.10.0"
    assert common_version("2.0.0", ["2.0.0"], ["1.0.0"]) is None


WORDS = NearWords({"BOOK", "QUERY", "RESERVE", "DELIVER"})
letters = st.text(alphabet="ABCDEFGHIJ", min_size=1, max_size=10)


@pytest.mark.parametrize("text", ["BOK", "BOOOK", "BOAK", "OBOK", "book", "BOOKING"])
def test_typo_or_inflected_form_finds_the_intended_word(text: str) -> None:
    assert WORDS.near(text) == ["BOOK"]


@pytest.mark.parametrize("text", ["", "ZEBRA", "X" * 40, "B" * 20_000, "BO OK IT"])
def test_a_text_far_from_every_word_finds_none(text: str) -> None:
    assert WORDS.near(text) == []


@given(letters, st.integers(0, 9), st.sampled_from("ABCDEFGHIJ"))
def test_one_letter_more_less_or_other_is_found(word: str, at: int, letter: str) -> None:
    index = NearWords({word})
    at %= len(word)
    other = max(at, 1)  # with another first letter it is another word
    for slip in (word[:at] + letter + word[at:], word[:at] + word[at + 1 :], word[:other] + letter + word[other + 1 :]):
        assert word in index.near(slip)


@given(st.text(max_size=60), st.sets(letters, max_size=20))
def test_at_most_three_words_are_offered_and_all_of_them_exist(text: str, words: set[str]) -> None:
    found = NearWords(words).near(text)
    assert len(found) <= 3
    assert set(found) <= words
