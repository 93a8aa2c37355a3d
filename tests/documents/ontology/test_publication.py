"""Published documents of the core: golden files, and one meaning in all notations."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, parse
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

from bespeak.contract.ontology.core import CLASSES, PROPERTIES, Namespace
from bespeak.documents.ontology.publication import (
    Iri,
    Value,
    core_turtle,
    profile_shapes,
    publish_core,
    registration_shapes,
    write_jsonld,
    write_turtle,
)
from bespeak.documents.ontology.reader import read_ontology

PUBLISHED = Path(__file__).with_name("published")


def test_documents_are_those_that_were_reviewed() -> None:
    """After a change of the table, write them with `bespeak semantic publish -o tests/documents/ontology/published`."""
    documents = publish_core()
    assert {path.name for path in PUBLISHED.iterdir()} == documents.keys()
    check_each(documents, lambda name: _same(name, documents[name]))


def _same(name: str, text: str) -> None:
    assert (PUBLISHED / name).read_text() == text


def test_every_name_follows_the_base() -> None:
    for name, text in publish_core(Namespace("https://acme.example/m/")).items():
        assert "https://acme.example/m/ioa/" in text, name
        assert "ex.org" not in text, name


def test_turtle_and_json_ld_are_the_same_graph() -> None:
    documents = publish_core()
    graphs = [
        Dataset(parse(documents["core.ttl"], RdfFormat.TURTLE)),
        Dataset(parse(documents["core.jsonld"], RdfFormat.JSON_LD)),
    ]
    for graph in graphs:
        graph.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    assert graphs[0] == graphs[1]


@pytest.mark.requirement("IOA-5-2")
def test_core_is_an_owl_ontology_that_the_reader_understands() -> None:
    ontology, findings = read_ontology(publish_core()["core.ttl"].encode(), "core.ttl")
    assert ontology is not None
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


@pytest.mark.parametrize(
    "value",
    [
        *(
            "plain",
            'quotes " and \\ strokes',
            'two\n"""lines"""',
            "ü",
            7,
            True,
            False,
            Iri("x:a"),
            Iri("https://ex.org/a"),
        ),
        *({"x:p": ("a", "b"), "a": Iri("x:T")}, [Iri("x:a"), {"x:p": 1}, "text"], {"x:p": {"x:q": [1, 2]}}),
    ],
)
def test_both_notations_say_the_same(value: Value) -> None:
    prefixes, nodes = {"x": "https://x.example/"}, {"x:s": {"a": (Iri("x:T"), Iri("x:U")), "x:p": value}}
    found = [
        Dataset(parse(write_turtle(prefixes, nodes), RdfFormat.TURTLE)),
        Dataset(parse(write_jsonld(prefixes, nodes), RdfFormat.JSON_LD)),
    ]
    for graph in found:
        graph.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    assert found[0] == found[1]
    assert len(found[0]) > 2


def test_terms_are_marked_by_their_source() -> None:
    text = core_turtle()
    assert 'skos:note "Required by IoA 5.1."' in text
    assert 'skos:note "From the examples of IoA 5.5, which does not declare it."' in text
    assert "ioa:subDomainOf a owl:ObjectProperty, owl:TransitiveProperty ;" in text
    assert "owl:inverseOf ioa:providedBy" in text
