"""Words of names: however a name is written, the same words come out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.checks.alignment.names import MOST_WORDS, PROPERTY_WORDS, STOP_WORDS, is_actor, is_derived, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ProgramCommitteeMember", "program committee member"),
        ("PCMember", "pc member"),
        ("Wall_of_the_Urinary_Bladder", "wall urinary bladder"),
        ("L1_Vertebra", "l 1 vertebra"),
        ("review-IDs", "review identifier"),
        ("Müller's cell", "muller cell"),
        ("cranial nerve VII", "cranial nerve 7"),
        ("1st rib", "1 rib"),
        ("first rib", "1 rib"),
        ("the", "the"),
    ],
)
def test_names_are_split_at_case_digits_and_punctuation(text: str, words: str) -> None:
    assert " ".join(words_of(text)) == words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("oesophagus", "esophagus"),
        ("caecum", "cecum"),
        ("tumours", "tumor"),
        ("organisation", "Organizations"),
        ("fibres", "fiber"),
        ("vertebrae", "vertebra"),
        ("nuclei", "nucleus"),
        ("bodies", "body"),
        ("processes", "process"),
        ("teeth", "tooth"),
        ("chairmen", "chairman"),
        ("exam", "examinations"),
    ],
)
def test_spellings_and_plurals_have_one_form(one: str, other: str) -> None:
    assert words_of(one) == words_of(other)


@pytest.mark.parametrize("word", ["thymus", "axis", "pelvis", "class", "series", "iris", "bus"])
def test_word_that_only_looks_like_a_plural_is_kept(word: str) -> None:
    assert words_of(word) == (word,)


@pytest.mark.parametrize(
    "pair",
    [
        "cranium cranial",
        "pharynx pharyngeal",
        "ulna ulnar",
        "ventricle ventricular",
        "artery arterial",
        "region regional",
    ],
)
def test_noun_and_its_adjective_belong_together(pair: str) -> None:
    one, other = pair.split()
    assert is_derived(one, other)
    assert is_derived(other, one)


@pytest.mark.parametrize(
    "pair", ["ileum ilium", "peritoneum perineum", "malleus malleolus", "medial median", "data date"]
)
def test_words_that_only_look_alike_do_not(pair: str) -> None:
    assert not is_derived(*pair.split())


def test_one_who_acts_is_told_from_the_action() -> None:
    assert is_actor("review", "reviewer")
    assert is_actor("contributor", "contribution")
    assert not is_actor("ulna", "ulnar")


def test_prefixes_of_properties_are_left_out() -> None:
    assert words_of("hasBeenAssignedTo", STOP_WORDS | PROPERTY_WORDS) == ("assigned",)


@given(st.text())
def test_any_text_has_a_bounded_number_of_words(text: str) -> None:
    words = words_of(text)
    assert len(words) <= MOST_WORDS
    assert all(words)
