"""Names of terms: what is compared, and how much each name counts."""

from __future__ import annotations

from tests.checks.alignment.terms import term

from bespeak.checks.alignment.names import MOST_NAMES, Acronyms, names_of

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
