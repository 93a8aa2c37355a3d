"""The fast path reads what pyld reads, or hands the payload over."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import pytest
from hypothesis import event, given, settings
from tests.documents.envelope.payloads import envelopes
from tests.documents.ontology.figures import FIGURE_5, FIGURE_7, FIGURE_8, FIGURE_9

from bespeak.contract.ontology.core import DEFAULT
from bespeak.documents.envelope.expansion import (
    Node,
    NotPlain,
    TermTable,
    compile_context,
    core_node,
    expand_iri,
    expand_nodes,
    read_plain,
)
from bespeak.documents.ontology.contexts import shipped_contexts

PREFIX = {"cs": "https://ex.org/onto/cs#"}


def both(document: dict[str, Any]) -> tuple[Node | None, Any]:
    """Read a payload on both paths; None if the fast one hands it over."""
    table = compile_context(document["@context"], DEFAULT, shipped_contexts()).table
    assert table is not None
    try:
        fast = read_plain(document, table, "SemanticProfile")
    except NotPlain:
        return None, None
    expanded = expand_nodes(document, DEFAULT, shipped_contexts())
    assert isinstance(expanded, list)
    return fast, core_node(expanded[0], "SemanticProfile", DEFAULT)


def test_figures_are_read_on_the_fast_path_as_pyld_reads_them() -> None:
    for figure in (FIGURE_5, FIGURE_7, FIGURE_8["semantic"], FIGURE_9["semantic"]):
        fast, slow = both(figure)
        assert fast is not None
        assert fast == slow


@settings(max_examples=300, deadline=None)
@given(envelopes)
def test_generated_payloads_are_read_alike_or_handed_over(document: dict[str, Any]) -> None:
    before = copy.deepcopy(document)
    compiled = compile_context(document["@context"], DEFAULT, shipped_contexts())
    if compiled.table is None:
        event("no table")
        return
    fast, slow = both(document)
    event("handed over" if fast is None else "fast")
    assert fast == slow
    assert document == before


@pytest.mark.parametrize(
    "value", ["cs", "cs:", "", ":x", "_:b0", "@id", "relative", "a b:c", "cs:a\x00b", "cs:%0Ax", 5, None, ["cs:x"], {}]
)
def test_what_is_not_an_absolute_iri_is_handed_over(value: Any) -> None:
    table = TermTable(slots={}, prefixes=PREFIX, types={})
    if value == "cs:":  # the namespace itself
        assert expand_iri(value, table) == PREFIX["cs"]
        return
    with pytest.raises(NotPlain):
        expand_iri(value, table)


def test_kept_iris_are_bounded_and_a_double_slash_is_never_a_prefix() -> None:
    table = TermTable(slots={}, prefixes=PREFIX, types={})
    for number in range(1_000):
        assert expand_iri(f"cs:{number}", table) == f"{PREFIX['cs']}{number}"
    assert len(table.expanded) <= 128
    assert expand_iri("cs://x", table) == "cs://x"


def test_hostile_shapes_are_handed_over() -> None:
    shapes: list[dict[str, Any]] = [
        {"type": []},
        {"capabilityRefs": ["cs:X"] * 1_000},
        {"capabilityRefs": [["cs:X"]]},
        {"capabilityRefs": [None]},
        {"intentRef": 7},
        {"ontologyVersion": True},
        {"ontologyVersion": "1" * 5_000},
        {"profileContext": "cs:Somewhere"},
        {"profileContext": {"@context": {}}},
        {"@type": "ioa:SemanticProfile"},
        {"unknown": 1},
        {"ioa:intentRef": "cs:X"},
    ]
    assert Counter(both(FIGURE_5 | shape)[0] is None for shape in shapes) == {True: len(shapes)}
