"""Names of terms: what is compared, and how much each name counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.extensions.semantics.alignment.terms import term

from bespeak.extensions.semantics.alignment.names import (
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


def test_local_name_is_used_without_a_label_which_counts_more_than_synonym_and_abbreviation() -> None:
    assert found("http://x.example#Conference_Dinner") == {"conference dinner": 1.0}
    assert found("http://x.example#MA_0000123", "heart") == {"heart": 1.0}
    weights = found("x:1", "large language model", synonyms=("foundation model",), abbreviations=("LLM",))
    assert weights["large language model"] > weights["foundation model"] > 0.9 > weights["llm"]


def test_acronym_is_expanded_if_other_names_have_its_initials_in_one_clear_reading() -> None:
    acronyms = Acronyms(["PCMember", "Program_Committee"])
    names = {" ".join(name.words) for name in names_of(term("x:#PCMember"), acronyms)}
    assert names == {"pc member", "program committee member"}
    texts = ["PCMember", "Program_Committee", "Poster_Chair"]
    assert len(names_of(term("x:#PCMember"), Acronyms(texts))) == 1
    frequent = Acronyms([*texts, "Program_Committee_Chair"])
    assert "program" in names_of(term("x:#PCMember"), frequent)[1].words


def test_property_may_repeat_the_class_that_it_leads_to_and_the_number_of_names_is_bounded() -> None:
    names = names_of(term("x:#writePaper", kind="object_property"), NO_ACRONYMS, around=["paper"])
    assert {name.words: name.weight < 1 for name in names} == {("write", "paper"): False, ("write",): True}
    many = tuple(f"name {word}{word}" for word in "abcdefghijklmnopqrstuvwxyz" * 4)
    assert len(names_of(term("x:1", "heart", synonyms=many), NO_ACRONYMS)) <= MOST_NAMES


@rows(
    "text, words",
    ("ProgramCommitteeMember", "program committee member"),
    ("PCMember", "pc member"),
    ("Wall_of_the_Urinary_Bladder", "wall urinary bladder"),
    ("L1_Vertebra", "l 1 vertebra"),
    ("review-IDs", "review id"),
    ("Müller's cell", "muller cell"),
    ("cranial nerve VII", "cranial nerve 7"),
    ("1st rib", "1 rib"),
    ("first rib", "1 rib"),
    ("the", "the"),
)
def test_names_are_split_at_case_digits_and_punctuation(text: str, words: str) -> None:
    assert " ".join(words_of(text)) == words


SAME = (
    "oesophagus esophagus, caecum cecum, tumours tumor, organisation Organizations, fibres fiber, vertebrae vertebra, "
    "nuclei nucleus, bodies body, processes process, teeth tooth, chairmen chairman, exam examinations"
)


@pytest.mark.parametrize("pair", SAME.split(", "))
def test_spellings_and_plurals_have_one_form(pair: str) -> None:
    one, other = pair.split()
    assert words_of(one) == words_of(other)


@pytest.mark.parametrize("word", ["thymus", "axis", "pelvis", "class", "series", "iris", "bus"])
def test_word_that_only_looks_like_a_plural_is_kept(word: str) -> None:
    assert words_of(word) == (word,)


@rows(
    "pairs, derived",
    (
        "cranium cranial, pharynx pharyngeal, ulna ulnar, ventricle ventricular, artery arterial, region regional",
        True,
    ),
    ("ileum ilium, peritoneum perineum, malleus malleolus, medial median, data date", False),
)
def test_noun_and_its_adjective_belong_together_and_words_that_only_look_alike_do_not(
    pairs: str, derived: bool
) -> None:
    for one, other in (pair.split() for pair in pairs.split(", ")):
        assert (is_derived(one, other), is_derived(other, one)) == (derived, derived), one


def test_actor_is_told_from_the_action_and_prefixes_of_properties_are_left_out() -> None:
    assert is_actor("review", "reviewer")
    assert is_actor("contributor", "contribution")
    assert not is_actor("ulna", "ulnar")
    assert words_of("hasBeenAssignedTo", STOP_WORDS | PROPERTY_WORDS) == ("assigned",)


@given(st.text())
def test_any_text_has_a_bounded_number_of_words(text: str) -> None:
    words = words_of(text)
    assert len(words) <= MOST_WORDS
    assert all(words)


def names(*texts: str) -> list[Name]:
    return [make_name(text, text.split()) for text in texts]


def test_words_that_replace_each_other_are_synonyms_and_more_evidence_counts_more() -> None:
    once = mine_synonyms([names("renal vein", "kidney vein")])
    assert once["renal"]["kidney"] == once["kidney"]["renal"] < 1
    twice = mine_synonyms([names("renal vein", "kidney vein"), names("renal artery", "kidney artery")])
    alone = mine_synonyms([names("thumb", "pollex")])
    assert once["renal"]["kidney"] < twice["renal"]["kidney"] < alone["thumb"]["pollex"]


def test_numbers_opposites_and_several_words_are_never_synonyms() -> None:
    assert mine_synonyms([names("rib 1", "rib 2"), names("left lung", "right lung")]) == {}
    assert mine_synonyms([names("renal vein", "kidney vessel"), names("heart", "cardiac muscle")]) == {}
