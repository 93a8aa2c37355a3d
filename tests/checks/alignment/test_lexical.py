"""Lexical similarity: words count by how rare they are, spellings and synonyms soften, contrasts separate."""

from __future__ import annotations

import pytest
from tests.growth import assert_linear

from bespeak.checks.alignment import signals
from bespeak.checks.alignment.names import Name, make_name, words_of
from bespeak.checks.alignment.signals import Lexicon, contrast


def side(**labels: str) -> dict[str, list[Name]]:
    """Return terms with names that are separated by commas."""
    return {iri: [make_name(text, words_of(text)) for text in names.split(", ")] for iri, names in labels.items()}


def score(one: str, other: str, *more: str) -> float:
    """Return the similarity of two names, in ontologies that have further names."""
    others = {f"m{place}": text for place, text in enumerate(more)}
    lexicon = Lexicon(side(a=one, **others), side(b=other, **others))
    match = lexicon.matches("a").get("b")
    return match.score if match else 0.0


def test_order_of_words_does_not_matter() -> None:
    assert score("wall of the stomach", "Stomach_Wall") == 1.0


def test_joined_words_are_almost_the_same() -> None:
    assert 0.95 < score("fore limb", "forelimb") < 1.0


def test_rare_words_count_more_than_frequent_ones() -> None:
    more = ("deep vein", "long vein", "short vein")
    assert score("saphenous vein", "saphenous", *more) > score("saphenous vein", "vein", *more)


def test_misspelled_word_is_similar() -> None:
    assert 0.9 < score("pharyngeal artery", "pharyngal artery") < 1.0


@pytest.mark.requirement("IOA-7.4-1")
def test_declared_synonyms_help_other_terms() -> None:
    lexicon = Lexicon(side(a="kidney artery"), side(b="renal artery", c="renal vein, kidney vein"))
    assert lexicon.matches("a")["b"].score > 0.85


def test_terms_that_share_a_name_show_synonyms_to_each_other() -> None:
    lexicon = Lexicon(side(a="renal artery", v="renal vein"), side(b="kidney artery", w="kidney vein, vena renis"))
    assert "b" not in lexicon.matches("a") or lexicon.matches("a")["b"].score < 0.75
    joined = Lexicon(
        side(a="renal artery", v="renal vein, vena renis"), side(b="kidney artery", w="kidney vein, vena renis")
    )
    assert joined.matches("a")["b"].score > 0.85


def test_one_who_acts_is_not_the_action() -> None:
    assert score("review", "reviewer") < 0.6


def test_numbers_and_opposites_separate_similar_names() -> None:
    same = score("lumbar vertebra 1", "lumbar vertebra 1")
    assert score("lumbar vertebra 1", "lumbar vertebra 2") < 0.6 < same
    assert score("C1 vertebra", "S1 vertebra") < 0.6
    assert score("left lung lobe", "right lung lobe") < 0.6
    assert contrast({"left"}, set()) < 1.0 == contrast({"big"}, {"small"})


def test_work_is_linear_even_if_every_name_has_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "_LEAST_LOOKUPS", 20)
    monkeypatch.setattr(signals, "_MOST_LOOKUPS", 20)

    def work(count: int) -> None:
        names = side(**{f"t{place}": f"alpha beta gamma {place}" for place in range(count)})
        lexicon = Lexicon(names, names)
        for iri in names:
            lexicon.matches(iri)

    assert_linear(work, 40)
