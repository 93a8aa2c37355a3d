"""Names of terms: what is compared, and how much each name counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.checks.alignment.terms import term

from bespeak.checks.alignment.names import (
    MOST_NAMES,
    MOST_WORDS,
    PROPERTY_WORDS,
    STOP_WORDS,
    Acronyms,
    Name,
    is_actor,
    is_derived,
    make_name,
    mine_synonyms,
    names_of,
    words_of,
)

NO_ACRONYMS = Acronyms([])


def found(*args: object, **given: object) -> dict[str, float]:
    one = term(*args, **given)  # type: ignore[arg-type]
    return {" ".join(name.words): name.weight for name in names_of(one, NO_ACRONYMS)}


def test_local_name_is_used_without_a_label() -> None:
    assert found("http://x.example#Conference_Dinner") == {"conference dinner": 1.0}
    assert found("http://x.example#MA_0000123", "heart") == {"heart": 1.0}


def test_label_counts_more_than_a_synonym_and_much_more_than_an_abbreviation() -> None:
    weights = found("x:1", "large language model", synonyms=("foundation model",), abbreviations=("LLM",))
    assert weights["large language model"] > weights["foundation model"] > 0.9 > weights["llm"]


def test_acronym_is_expanded_if_other_names_have_its_initials() -> None:
    acronyms = Acronyms(["PCMember", "Program_Committee"])
    names = {" ".join(name.words) for name in names_of(term("x:#PCMember"), acronyms)}
    assert names == {"pc member", "program committee member"}


def test_acronym_with_two_readings_is_left_as_it_is_unless_one_is_clearly_more_frequent() -> None:
    texts = ["PCMember", "Program_Committee", "Poster_Chair"]
    assert len(names_of(term("x:#PCMember"), Acronyms(texts))) == 1
    frequent = Acronyms([*texts, "Program_Committee_Chair"])
    assert "program" in names_of(term("x:#PCMember"), frequent)[1].words


def test_property_may_repeat_the_class_that_it_leads_to() -> None:
    names = names_of(term("x:#writePaper", kind="object_property"), NO_ACRONYMS, around=["paper"])
    assert {name.words: name.weight < 1 for name in names} == {("write", "paper"): False, ("write",): True}


def test_number_of_names_is_bounded() -> None:
    many = tuple(f"name {word}{word}" for word in "abcdefghijklmnopqrstuvwxyz" * 4)
    assert len(names_of(term("x:1", "heart", synonyms=many), NO_ACRONYMS)) <= MOST_NAMES


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


def names(*texts: str) -> list[Name]:
    return [make_name(text, text.split()) for text in texts]


def test_words_that_replace_each_other_are_synonyms_in_both_directions() -> None:
    once = mine_synonyms([names("renal vein", "kidney vein")])
    assert once["renal"]["kidney"] == once["kidney"]["renal"] < 1


def test_more_evidence_counts_more() -> None:
    once = mine_synonyms([names("renal vein", "kidney vein")])
    twice = mine_synonyms([names("renal vein", "kidney vein"), names("renal artery", "kidney artery")])
    alone = mine_synonyms([names("thumb", "pollex")])
    assert once["renal"]["kidney"] < twice["renal"]["kidney"] < alone["thumb"]["pollex"]


def test_numbers_and_opposites_are_never_synonyms() -> None:
    assert mine_synonyms([names("rib 1", "rib 2"), names("left lung", "right lung")]) == {}


def test_names_that_differ_in_more_words_show_nothing() -> None:
    assert mine_synonyms([names("renal vein", "kidney vessel"), names("heart", "cardiac muscle")]) == {}
