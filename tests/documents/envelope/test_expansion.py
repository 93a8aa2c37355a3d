"""Expanded nodes are reduced to the members of the core; values of another kind are marked."""

from __future__ import annotations

from typing import Any

from bespeak.contract.ontology.core import DEFAULT
from bespeak.contract.ontology.profile import Violation
from bespeak.documents.envelope.expansion import Unfit, core_node, expand_nodes
from bespeak.documents.ontology.contexts import shipped_contexts

IOA = DEFAULT.terms


def value(name: str, *items: Any) -> Any:
    return core_node({f"{IOA}{name}": list(items)}, "SemanticProfile", DEFAULT)[name]


def test_values_of_the_kind_are_kept_and_others_are_marked() -> None:
    assert value("intentRef", {"@id": "x:y"}) == ["x:y"]
    assert value("intentRef", {"@id": "x:y", "@type": ["x:T"]}) == ["x:y"]
    assert value("intentRef", {"@value": "x:y"}, {"@id": "_:b"}, {"@list": []}) == [
        *(Unfit("x:y"), Unfit("_:b"), Unfit({"@list": []}))
    ]
    assert value("ontologyVersion", {"@value": 1.5}, {"@value": "x", "@language": "en"}) == [1.5, "x"]
    assert value("ontologyVersion", {"@value": True}, {"@id": "x:y"}) == [Unfit(True), Unfit("x:y")]
    assert value("profileContext", {"@id": "x:y"}, {}, {"@value": 1}) == [{"@id": "x:y"}, {}, Unfit(1)]


def test_members_of_other_classes_are_left_out() -> None:
    assert core_node({f"{IOA}term": [{"@value": "x"}], "x:other": []}, "SemanticProfile", DEFAULT) == {}
    # A member of the core is not a label because its IRI ends in that name.
    assert core_node({f"{IOA}label": [{"@value": "x"}]}, "Capability", DEFAULT) == {}


def test_what_pyld_cannot_expand_is_a_violation() -> None:
    found = expand_nodes({"@context": DEFAULT.context, "@id": 5}, DEFAULT, shipped_contexts())
    assert isinstance(found, Violation)
    assert found.rule == "I208"
    assert "@id" in found.message
