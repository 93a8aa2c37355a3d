"""Expanded nodes are reduced to the members of the core; values of another kind are marked."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import pytest
from hypothesis import event, given, settings
from pyld.jsonld import JsonLdError
from tests.extensions.semantics.envelope.payloads import envelopes
from tests.extensions.semantics.ontology.figures import FIGURE_5, FIGURE_7, FIGURE_8, FIGURE_9

from bespeak.contract.core_ontology import DEFAULT, PROPERTIES
from bespeak.extensions.semantics.envelope.expansion import (
    LABEL,
    MEMBERS,
    MOST_TEXT,
    MOST_VALUES,
    BadValue,
    Compiled,
    Node,
    NotPlain,
    TermTable,
    compile_context,
    core_node,
    expand_iri,
    expand_nodes,
    read_plain,
    refuse_loading,
)
from bespeak.extensions.semantics.envelope.reader import (
    MOST_BYTES,
    MOST_ITEMS,
    MOST_REGISTRATION_ITEMS,
    EnvelopeReader,
    parse,
)
from bespeak.extensions.semantics.ontology.contexts import shipped_contexts
from bespeak.extensions.semantics.profile import Violation

IOA = DEFAULT.terms


def value(name: str, *items: Any) -> Any:
    return core_node({f"{IOA}{name}": list(items)}, "SemanticProfile", DEFAULT)[name]


def test_values_of_the_kind_are_kept_and_others_are_marked() -> None:
    assert value("intentRef", {"@id": "x:y"}) == ["x:y"]
    assert value("intentRef", {"@id": "x:y", "@type": ["x:T"]}) == ["x:y"]
    assert value("intentRef", {"@value": "x:y"}, {"@id": "_:b"}, {"@list": []}) == [
        *(BadValue("x:y"), BadValue("_:b"), BadValue({"@list": []}))
    ]
    assert value("ontologyVersion", {"@value": 1.5}, {"@value": "x", "@language": "en"}) == [1.5, "x"]
    assert value("ontologyVersion", {"@value": True}, {"@id": "x:y"}) == [BadValue(True), BadValue("x:y")]
    assert value("profileContext", {"@id": "x:y"}, {}, {"@value": 1}) == [{"@id": "x:y"}, {}, BadValue(1)]


def test_members_of_other_classes_are_left_out_and_what_cannot_be_expanded_is_a_violation() -> None:
    assert core_node({f"{IOA}term": [{"@value": "x"}], "x:other": []}, "SemanticProfile", DEFAULT) == {}
    # A member of the core is not a label because its IRI ends in that name.
    assert core_node({f"{IOA}label": [{"@value": "x"}]}, "Capability", DEFAULT) == {}
    found = expand_nodes({"@context": DEFAULT.context, "@id": 5}, DEFAULT, shipped_contexts())
    assert isinstance(found, Violation)
    assert found.rule == "I208"
    assert "@id" in found.message


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


def compiled(*more: Any) -> Compiled:
    return compile_context([DEFAULT.context, *more], DEFAULT, shipped_contexts())


def test_base_context_has_a_slot_for_each_member_of_a_class() -> None:
    table = compiled().table
    profile = table.slots["SemanticProfile"]
    assert profile["ontologyId"][:2] == ("ontologyId", "iri")
    assert (profile["ontologyVersion"][:2], profile["id"][:2]) == (("ontologyVersion", "literal"), ("@id", "@id"))
    assert profile["profileContext"][2] is table.slots["Context"]
    assert "term" not in profile
    assert table.prefixes == {"ioa": IOA}


def test_other_names_of_members_get_slots_if_they_are_plain() -> None:
    plain = {"caps": {"@id": f"{IOA}capabilityRefs", "@type": "@id"}}
    table = compiled(plain).table
    assert table.slots["SemanticProfile"]["caps"][0] == "capabilityRefs"
    for definition in (
        f"{IOA}capabilityRefs",
        {"@id": f"{IOA}capabilityRefs", "@type": "@vocab"},
        {"@id": f"{IOA}capabilityRefs", "@type": "@id", "@container": "@list"},
        {"@reverse": f"{IOA}capabilityRefs", "@type": "@id"},
    ):
        table = compiled({"caps": definition}).table
        assert "caps" not in table.slots["SemanticProfile"]


def test_only_delimited_namespaces_are_prefixes_and_some_contexts_have_no_table() -> None:
    table = compiled({"cs": "https://ex.org/onto/cs#", "x": "https://ex.org/x"}).table
    assert set(table.prefixes) == {"ioa", "cs"}
    for entry in ({"@vocab": "https://ex.org/v#"}, {"@base": "https://ex.org/"}, {"@language": "en"}):
        assert compiled(entry) == Compiled()
    with pytest.raises(JsonLdError, match="is not fetched"):  # nothing is ever loaded
        refuse_loading("https://ex.org/ctx", {})


def found(**members: Any) -> set[tuple[str, str]]:
    return {(one.rule, one.path) for one in parse(FIGURE_5 | members).violations}


def test_values_texts_and_bytes_are_limited() -> None:
    binding = {"term": "LLM", "sense": "cs:LargeLanguageModel"}
    path = "/profileContext/termBindings"
    assert found(capabilityRefs=["cs:X"] * MOST_VALUES) == set()
    assert found(capabilityRefs=["cs:X"] * (MOST_VALUES + 1)) == {("I209", "/capabilityRefs")}
    assert found(profileContext={"termBindings": [binding] * (MOST_VALUES + 1)}) == {("I209", path)}
    assert found(profileVersion="1" * (MOST_TEXT + 1)) == {("I209", "/profileVersion")}
    assert found(unknown="x" * MOST_BYTES) == {("I209", "")}
    assert {rule for rule, _ in found(ontologyVersion=10**5_000)} == {"I205"}


def test_work_of_the_general_path_is_limited() -> None:
    assert found(**{"cs:x": [{}] * (MOST_ITEMS + 1)}) == {("I209", "")}
    assert found(**{f"cs:k{number}": 1 for number in range(MOST_ITEMS)}) == {("I209", "")}
    assert found(**{"cs:x": [{}] * (MOST_ITEMS // 2)}) == set()
    assert {rule for rule, _ in found(**{"@context": [FIGURE_5["@context"][0]] * 20})} == {"I105"}
    many = {"@context": FIGURE_5["@context"], "@graph": [{}] * (MOST_REGISTRATION_ITEMS + 1)}
    assert [one.rule for one in EnvelopeReader().parse_registration(many).violations] == ["I209"]


def test_depth_is_limited_on_both_paths() -> None:
    deep: Any = "x"
    for _ in range(500):
        deep = {"profileContext": deep}
    assert {rule for rule, _ in found(profileContext=deep)} == {"I209"}
    listed: Any = ["cs:X"]
    for _ in range(500):
        listed = [listed]
    assert {rule for rule, _ in found(capabilityRefs=listed)} == {"I209"}


def test_each_property_is_a_member_of_its_classes() -> None:
    for name, one in PROPERTIES.items():
        holders = {kind for kind, members in MEMBERS.items() if name in members}
        assert holders == set(one.domains)
    assert all(members[LABEL].value == "literal" for members in MEMBERS.values())
