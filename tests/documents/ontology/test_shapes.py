"""The published shapes find in the figures of the draft what the rules say, with an independent validator."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.cases import check_each
from tests.documents.ontology.figures import (
    FIGURE_2,
    FIGURE_3,
    FIGURE_4,
    FIGURE_5,
    FIGURE_6,
    FIGURE_7,
    FIGURE_8,
    FIGURE_9,
    PREFIXES,
)
from tests.documents.ontology.oracle import is_valid_shacl, violated

from bespeak.documents.ontology.publication import profile_shapes, registration_shapes

ONTOLOGIES = (FIGURE_2, FIGURE_3, FIGURE_4)
CLINICAL = f"""{PREFIXES} @prefix clinical: <https://y.org/onto/clinical#> .
clinical:note-summarize a ioa:Capability . clinical:summary-intent a ioa:Intent ;
  ioa:requiresCapability clinical:note-summarize ."""
AI = f"""{PREFIXES} cs:AI a ioa:Domain ; ioa:subDomainOf cs:ComputerScience .
cs:Agent a ioa:Concept ; ioa:inDomain cs:AI ."""


def changed(**members: Any) -> dict[str, Any]:
    """Return Figure 5 with other members; None removes one."""
    document = copy.deepcopy(FIGURE_5) | {"@context": FIGURE_9["semantic"]["@context"]} | members
    return {name: value for name, value in document.items() if value is not None}


def bound(sense: str | list[str] | None, domain: str = "cs:ComputerScience") -> dict[str, Any]:
    binding = {"term": "LLM", "sense": sense} if sense else {"term": "LLM"}
    return changed(profileContext={"domain": domain, "termBindings": [binding]})


@pytest.mark.requirement("IOA-5.4-1")
def test_figures_are_judged_as_the_draft_says() -> None:
    assert violated(None, *ONTOLOGIES) == set()
    assert violated(FIGURE_5, *ONTOLOGIES) == set()
    assert violated(FIGURE_6, registration=True) == set()
    assert violated(FIGURE_7, CLINICAL) == set()
    assert violated(FIGURE_8["semantic"], *ONTOLOGIES) == set()
    # Figure 9 also lacks the capabilities that its intent requires.
    assert violated(FIGURE_9["semantic"], *ONTOLOGIES) == {"I206", "I224", "I227"}


def test_every_rule_of_a_shape_is_broken_by_a_document() -> None:
    cases: list[tuple[dict[str, Any], set[str]]] = [
        (changed(type="ioa:Intent"), {"I203"}),
        (changed(ontologyId=None), {"I204"}),
        (changed(ontologyId=["x:a", "x:b"]), {"I204"}),
        (changed(ontologyVersion=None), {"I205"}),
        (changed(capabilityRefs=None), {"I206", "I224"}),
        (changed(intentRef=None), {"I207"}),
        (changed(profileVersion=["1", "2"]), {"I208"}),
        (bound(None), {"I208"}),
        (bound(["cs:LargeLanguageModel", "law:MasterOfLaws"]), {"I208"}),
        (changed(capabilityRefs=["cs:TechTranslation", "cs:LargeLanguageModel"]), {"I222"}),
        (changed(intentRef="cs:TechTranslation"), {"I223"}),
        (changed(capabilityRefs=["cs:Agent"]), {"I222", "I224"}),
        (bound("cs:LargeLanguageModel", "law:Law"), {"I225", "I227"}),
        (bound("cs:TechTranslation"), {"I226"}),
        (bound("cs:Unknown"), {"I226"}),
        (bound("cs:Agent"), set()),
        (bound("cs:Agent", "cs:AI"), set()),
    ]
    check_each(cases, lambda case: _expect(*case))


def _expect(document: dict[str, Any], rules: set[str]) -> None:
    # The other sense is from another domain, which Figure 9 shows.
    assert violated(document, *ONTOLOGIES, AI) - ({"I227"} if rules == {"I208"} else set()) == rules


@pytest.mark.requirement("IOA-5.4-2")
def test_has_capability_relates_agents_and_capabilities() -> None:
    good = f"{PREFIXES} cs:a a ioa:Agent ; ioa:hasCapability cs:TechTranslation ."
    assert violated(None, FIGURE_3, good) == set()
    assert violated(None, FIGURE_3, good.replace("ioa:Agent", "ioa:Task")) == {"I221"}
    assert violated(None, FIGURE_3, good.replace("cs:TechTranslation", "cs:ComputerScience")) == {"I221"}


def test_classes_below_capability_and_intent_are_referenced_like_individuals() -> None:
    classes = f"""{PREFIXES} cs:Translation rdfs:subClassOf ioa:Capability . cs:Tech rdfs:subClassOf cs:Translation .
    cs:Goal rdfs:subClassOf ioa:Intent ; ioa:requiresCapability cs:Tech ."""
    assert violated(changed(capabilityRefs=["cs:Translation"], intentRef="cs:Goal"), *ONTOLOGIES, classes) == set()


def test_registration_needs_identifier_inputs_and_outputs() -> None:
    for member, rule in (("id", "I212"), ("inputs", "I213"), ("outputs", "I213")):
        document = {name: value for name, value in FIGURE_6.items() if name != member}
        assert violated(document, registration=True) == {rule}


def test_shapes_are_valid_shacl() -> None:
    assert is_valid_shacl(profile_shapes())
    assert is_valid_shacl(registration_shapes())
