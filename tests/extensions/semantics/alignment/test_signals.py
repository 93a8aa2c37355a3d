"""Lexical similarity: words count by how rare they are, spellings and synonyms soften, contrasts separate."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.extensions.semantics.alignment.terms import A, capability, ontology, term
from tests.growth import assert_linear

from bespeak.extensions.semantics.alignment import signals
from bespeak.extensions.semantics.alignment.names import Name, make_name, words_of
from bespeak.extensions.semantics.alignment.signals import (
    Hierarchy,
    History,
    NameIndex,
    Vectors,
    behavioral,
    contrast,
    structural,
)


def side(**labels: str) -> dict[str, list[Name]]:
    """Return terms with names that are separated by commas."""
    return {iri: [make_name(text, words_of(text)) for text in names.split(", ")] for iri, names in labels.items()}


def score(one: str, other: str, *more: str) -> float:
    """Return the similarity of two names, in ontologies that have further names."""
    others = {f"m{place}": text for place, text in enumerate(more)}
    lexicon = NameIndex(side(a=one, **others), side(b=other, **others))
    match = lexicon.matches("a").get("b")
    return match.score if match else 0.0


@rows(
    "one, other, least, most",
    ("wall of the stomach", "Stomach_Wall", 1.0, 1.0),  # the order does not matter
    ("fore limb", "forelimb", 0.951, 0.999),
    ("pharyngeal artery", "pharyngal artery", 0.901, 0.999),  # a misspelled word
    ("review", "reviewer", 0.0, 0.599),  # one who acts is not the action
    ("lumbar vertebra 1", "lumbar vertebra 2", 0.0, 0.599),
    ("C1 vertebra", "S1 vertebra", 0.0, 0.599),
    ("left lung lobe", "right lung lobe", 0.0, 0.599),
)
def test_similarity_of_names_by_order_spelling_and_contrast(one: str, other: str, least: float, most: float) -> None:
    assert least <= score(one, other) <= most


@pytest.mark.requirement("IOA-7.4-1")
def test_rare_words_count_more_than_frequent_ones_and_declared_synonyms_help_other_terms() -> None:
    more = ("deep vein", "long vein", "short vein")
    assert score("saphenous vein", "saphenous", *more) > score("saphenous vein", "vein", *more)
    lexicon = NameIndex(side(a="kidney artery"), side(b="renal artery", c="renal vein, kidney vein"))
    assert lexicon.matches("a")["b"].score > 0.85


def test_terms_that_share_a_name_show_synonyms_to_each_other() -> None:
    lexicon = NameIndex(side(a="renal artery", v="renal vein"), side(b="kidney artery", w="kidney vein, vena renis"))
    assert "b" not in lexicon.matches("a") or lexicon.matches("a")["b"].score < 0.75
    joined = NameIndex(
        side(a="renal artery", v="renal vein, vena renis"), side(b="kidney artery", w="kidney vein, vena renis")
    )
    assert joined.matches("a")["b"].score > 0.85


def test_only_telling_words_are_contrasts() -> None:
    assert contrast({"left"}, set()) < 1.0 == contrast({"big"}, {"small"})


def test_work_is_linear_even_if_every_name_has_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "_LEAST_LOOKUPS", 20)
    monkeypatch.setattr(signals, "_MOST_LOOKUPS", 20)

    def work(count: int) -> None:
        names = side(**{f"t{place}": f"alpha beta gamma {place}" for place in range(count)})
        lexicon = NameIndex(names, names)
        for iri in names:
            lexicon.matches(iri)

    assert_linear(work, 40)


def fits(given_input: str, taken: str) -> float | None:
    return behavioral(capability("a:1", "one", (given_input,)), capability("b:1", "other", (taken,)))


@rows(
    "sent, taken, least, most",
    ("text/plain", "text/plain; charset=utf-8", 1.0, 1.0),
    ("text/plain", "text/*", 0.9, 1.0),
    ("text/plain", "*/*", 0.9, 1.0),
    ("application/fhir+json", "application/json", 0.5, 0.8),
    ("text/plain", "text/html", 0.1, 0.5),
    ("image/png", "text/plain", 0.0, 0.0),
)
def test_media_types_are_compatible_in_the_direction_of_the_call(
    sent: str, taken: str, least: float, most: float
) -> None:
    value = fits(sent, taken)
    assert value is not None
    assert least <= value <= most


def schema(required: list[str], **types: str) -> str:
    properties = {name: {"type": kind} for name, kind in types.items()}
    return json.dumps({"type": "object", "properties": properties, "required": required})


def test_schema_fits_if_required_input_and_read_output_are_given_with_their_types() -> None:
    wanted = schema(["patient_id"], patient_id="string", note="string")
    assert fits(schema([], patientId="string"), wanted) == 1.0
    assert fits(schema([], patientId="integer"), wanted) == 0.0
    assert fits(schema([], other="string"), wanted) == 0.0
    assert fits(json.dumps({"type": "array"}), wanted) == 0.0
    source = capability("a:1", "one", outputs=("text/*",))
    assert behavioral(source, capability("b:1", "other", outputs=("text/plain",))) == 0.95
    assert behavioral(source, capability("b:1", "other", outputs=("image/png",))) == 0.0
    # Without declarations there is no opinion.
    assert behavioral(capability("a:1", "one"), capability("b:1", "other", ("text/plain",))) is None


def test_history_is_smoothed_and_grows_reliable() -> None:
    assert History(0, 0).rate == 0.5
    assert History(1, 0).rate < History(20, 0).rate < 1.0
    assert History(1, 0).reliability < 0.2
    assert History(20, 0).reliability > 0.7


@given(st.text(), st.text())
def test_any_declaration_has_a_value_between_0_and_1(one: str, other: str) -> None:
    value = fits(one, other)
    assert value is not None
    assert 0 <= value <= 1


TERMS = (
    term("a:animal"),
    term("a:mammal", parents=("a:animal",)),
    term("a:cat", parents=("a:mammal",), fillers=("a:house",)),
    term("a:dog", parents=("a:mammal",)),
)


def test_neighbors_are_two_levels_above_wholes_and_children_and_a_circle_ends() -> None:
    hierarchy = Hierarchy(ontology(A, terms=TERMS))
    assert hierarchy.neighbors("a:cat") == (["a:mammal", "a:animal"], ("a:house",), ())
    assert hierarchy.neighbors("a:mammal")[2] == ["a:cat", "a:dog"]
    assert hierarchy.ancestors("a:cat") == {"a:mammal", "a:animal"}
    hierarchy = Hierarchy(ontology(A, terms=(term("a:1", parents=("a:2",)), term("a:2", parents=("a:1",)))))
    assert hierarchy.ancestors("a:1") == {"a:1", "a:2"}


def test_one_common_parent_is_enough_and_children_count_by_share() -> None:
    scores = {"a:p": {"b:p": 1.0}, "a:1": {"b:1": 1.0}}
    assert structural((("a:p", "a:q"), (), ()), (("b:p",), (), ()), scores) == 1.0
    assert structural(((), (), ("a:1", "a:2")), ((), (), ("b:1", "b:2")), scores) == 0.5
    # Without neighbors on both sides there is no opinion.
    assert structural((("a:p",), (), ()), ((), (), ("b:1",)), {}) is None


numpy = pytest.importorskip("numpy")


def embed(texts: Sequence[str]) -> object:
    rows = numpy.array([[text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts], dtype=float)
    return rows / numpy.linalg.norm(rows, axis=1, keepdims=True)


CAR, ACR, DOG = (make_name(text, [text]) for text in ("car", "acr", "dog"))


def test_close_names_are_found_and_distant_ones_are_not() -> None:
    vectors = Vectors(embed, {"a:1": [CAR]}, {"b:1": [ACR], "b:2": [DOG]})
    near = vectors.near()["a:1"]
    assert list(near) == ["b:1"]
    assert near["b:1"][0] == pytest.approx(1.0)
    assert Vectors(embed, {"a:1": [CAR]}, {}).near() == {}
