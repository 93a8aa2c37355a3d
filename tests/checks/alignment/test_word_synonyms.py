"""Word synonyms come from the synonyms that the ontologies declare."""

from __future__ import annotations

from bespeak.checks.alignment.names import Name, make_name, mine_synonyms


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
