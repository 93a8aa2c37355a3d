"""Structural agreement: parents, wholes and children."""

from __future__ import annotations

from tests.checks.alignment.terms import A, ontology, term

from bespeak.checks.alignment.signals import Hierarchy, structural

TERMS = (
    term("a:animal"),
    term("a:mammal", parents=("a:animal",)),
    term("a:cat", parents=("a:mammal",), fillers=("a:house",)),
    term("a:dog", parents=("a:mammal",)),
)


def test_neighbors_are_two_levels_above_wholes_and_children() -> None:
    hierarchy = Hierarchy(ontology(A, terms=TERMS))
    assert hierarchy.neighbors("a:cat") == (["a:mammal", "a:animal"], ("a:house",), ())
    assert hierarchy.neighbors("a:mammal")[2] == ["a:cat", "a:dog"]
    assert hierarchy.ancestors("a:cat") == {"a:mammal", "a:animal"}


def test_circular_hierarchy_ends() -> None:
    hierarchy = Hierarchy(ontology(A, terms=(term("a:1", parents=("a:2",)), term("a:2", parents=("a:1",)))))
    assert hierarchy.ancestors("a:1") == {"a:1", "a:2"}


def test_one_common_parent_is_enough_and_children_count_by_share() -> None:
    scores = {"a:p": {"b:p": 1.0}, "a:1": {"b:1": 1.0}}
    assert structural((("a:p", "a:q"), (), ()), (("b:p",), (), ()), scores) == 1.0
    assert structural(((), (), ("a:1", "a:2")), ((), (), ("b:1", "b:2")), scores) == 0.5


def test_without_neighbors_on_both_sides_there_is_no_opinion() -> None:
    assert structural((("a:p",), (), ()), ((), (), ("b:1",)), {}) is None
