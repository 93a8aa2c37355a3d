"""Published documents of the core: golden files, and one meaning in all notations."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, parse
from tests.cases import check_each, rows
from tests.extensions.semantics.ontology.figures import (
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
from tests.extensions.semantics.ontology.oracle import is_valid_shacl, violated

from bespeak.contract.core_ontology import CLASSES, PROPERTIES, Namespace
from bespeak.extensions.semantics.ontology.publication import (
    Iri,
    Value,
    profile_shapes,
    publish_core,
    registration_shapes,
    write_jsonld,
    write_turtle,
)
from bespeak.extensions.semantics.ontology.reader import read_ontology

PUBLISHED = Path(__file__).with_name("published")


def test_documents_are_those_that_were_reviewed() -> None:
    """After a change of the table, write them with `bespeak semantic publish -o` and the folder `published`."""
    documents = publish_core()
    assert {path.name for path in PUBLISHED.iterdir()} == documents.keys()
    assert {name: (PUBLISHED / name).read_text() for name in documents} == documents


def test_every_name_follows_the_base_and_both_notations_are_the_same_graph() -> None:
    for name, text in publish_core(Namespace("https://acme.example/m/")).items():
        assert "https://acme.example/m/ioa/" in text, name
        assert "ex.org" not in text, name
    documents = publish_core()
    assert_same(documents["core.ttl"], documents["core.jsonld"])


def assert_same(turtle: str, jsonld: str) -> None:
    one, other = Dataset(parse(turtle, RdfFormat.TURTLE)), Dataset(parse(jsonld, RdfFormat.JSON_LD))
    for graph in (one, other):
        graph.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    assert one == other
    assert len(one) > 2


@pytest.mark.requirement("IOA-5-2")
def test_core_is_an_owl_ontology_that_the_reader_understands() -> None:
    ontology, findings = read_ontology(publish_core()["core.ttl"].encode(), "core.ttl")
    assert findings == []
    assert (ontology.id, ontology.version) == ("https://ex.org/onto/agent-core", "1.0")
    kinds = {term.local_name: term.kind for term in ontology.terms.values()}
    assert kinds == {
        **dict.fromkeys(CLASSES, "class"),
        **{name: "object_property" if one.is_object else "data_property" for name, one in PROPERTIES.items()},
    }
    requires = next(term for term in ontology.terms.values() if term.local_name == "requiresCapability")
    assert [iri.rpartition("#")[2] for iri in requires.domains] == ["Intent", "Task"]


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
def test_shapes_are_valid_and_demand_the_capabilities_and_members_of_the_draft() -> None:
    good = f"{PREFIXES} cs:a a ioa:Agent ; ioa:hasCapability cs:TechTranslation ."
    assert violated(None, FIGURE_3, good) == set()
    assert violated(None, FIGURE_3, good.replace("ioa:Agent", "ioa:Task")) == {"I221"}
    assert violated(None, FIGURE_3, good.replace("cs:TechTranslation", "cs:ComputerScience")) == {"I221"}
    classes = f"""{PREFIXES} cs:Translation rdfs:subClassOf ioa:Capability . cs:Tech rdfs:subClassOf cs:Translation .
    cs:Goal rdfs:subClassOf ioa:Intent ; ioa:requiresCapability cs:Tech ."""
    assert violated(changed(capabilityRefs=["cs:Translation"], intentRef="cs:Goal"), *ONTOLOGIES, classes) == set()
    for member, rule in (("id", "I212"), ("inputs", "I213"), ("outputs", "I213")):
        document = {name: value for name, value in FIGURE_6.items() if name != member}
        assert violated(document, registration=True) == {rule}
    assert is_valid_shacl(profile_shapes())
    assert is_valid_shacl(registration_shapes())


@rows(
    "value",
    *("plain", 'quotes " and \\ strokes', 'two\n"""lines"""', "ü", 7, True, False),
    *(Iri("x:a"), Iri("https://ex.org/a")),
    *({"x:p": ("a", "b"), "a": Iri("x:T")}, [Iri("x:a"), {"x:p": 1}, "text"], {"x:p": {"x:q": [1, 2]}}),
)
def test_both_notations_say_the_same(value: Value) -> None:
    prefixes, nodes = {"x": "https://x.example/"}, {"x:s": {"a": (Iri("x:T"), Iri("x:U")), "x:p": value}}
    assert_same(write_turtle(prefixes, nodes), write_jsonld(prefixes, nodes))


def test_terms_are_marked_by_their_source() -> None:
    text = publish_core()["core.ttl"]
    assert 'skos:note "Required by IoA 5.1."' in text
    assert 'skos:note "From the examples of IoA 5.5, which does not declare it."' in text
    assert "ioa:subDomainOf a owl:ObjectProperty, owl:TransitiveProperty ;" in text
    assert "owl:inverseOf ioa:providedBy" in text
