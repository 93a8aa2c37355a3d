"""Ontologies from Turtle, RDF/XML and JSON-LD: names, relations, identity, and findings for what is missing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.cases import rows
from tests.extensions.semantics.ontology.figures import FIGURE_2, FIGURE_3, FIGURE_4, FIGURE_6
from tests.growth import assert_linear

from bespeak.contract.core_ontology import DEFAULT, OWL, RDF, RDFS, Namespace
from bespeak.extensions.semantics.ontology.contexts import LIMITS, DocumentRefused, OntologyLimits
from bespeak.extensions.semantics.ontology.reader import Graph, load_ontology, read_bytes, read_ontology
from bespeak.extensions.semantics.ontology.triples import RdfNotation, Triple
from bespeak.extensions.semantics.terms import Ontology, Synonym
from bespeak.text.diagnostics.diagnostic import Diagnostic

CS = "https://ex.org/onto/cs#"
OWL_XML = """<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [<!ENTITY owl "http://www.w3.org/2002/07/owl#">]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"
  xmlns:owl="http://www.w3.org/2002/07/owl#" xmlns:obo="http://www.geneontology.org/formats/oboInOwl#"
  xml:base="http://human.example">
<owl:Ontology rdf:about=""><owl:versionInfo>1.2</owl:versionInfo>
  <owl:imports rdf:resource="http://upper.example"/></owl:Ontology>
<owl:Class rdf:about="#Arm"><rdfs:label>Arm</rdfs:label><obo:hasRelatedSynonym rdf:resource="#genid1"/>
  <obo:hasExactSynonym>upper
    limb</obo:hasExactSynonym>
  <rdfs:subClassOf rdf:resource="#Limb"/><rdfs:subClassOf rdf:resource="&owl;Thing"/>
  <rdfs:subClassOf><owl:Restriction><owl:onProperty rdf:resource="#part"/>
    <owl:someValuesFrom rdf:resource="#Body"/></owl:Restriction></rdfs:subClassOf></owl:Class>
<owl:Class rdf:about="#Limb"><owl:deprecated rdf:datatype="http://www.w3.org/2001/XMLSchema#boolean">true</owl:deprecated></owl:Class>
<rdf:Description rdf:about="#genid1">
  <rdf:type rdf:resource="http://www.geneontology.org/formats/oboInOwl#Synonym"/><rdfs:label>brachium</rdfs:label>
</rdf:Description>
<owl:ObjectProperty rdf:about="#part"><rdfs:range rdf:resource="#Body"/><rdfs:domain><owl:Class>
  <owl:unionOf rdf:parseType="Collection"><owl:Class rdf:about="#Arm"/><owl:Class rdf:about="#Limb"/></owl:unionOf>
</owl:Class></rdfs:domain></owl:ObjectProperty>
<owl:DatatypeProperty rdf:about="#length"/><owl:AnnotationProperty rdf:about="#note"/>
<rdf:Description rdf:about="#mine"><rdf:type rdf:resource="#Arm"/></rdf:Description>
</rdf:RDF>"""


def read(text: str | dict[str, Any] | list[Any], notation: RdfNotation = "turtle", **given: Any) -> Ontology:
    data = text if isinstance(text, str) else json.dumps(text)
    ontology, findings = read_ontology(data.encode(), "file", notation, **given)
    assert ontology is not None, findings
    return ontology


def rules(text: str, notation: RdfNotation = "turtle", **given: Any) -> list[str]:
    return [finding.rule for finding in read_ontology(text.encode(), "file", notation, **given)[1]]


def test_figures_2_to_4_are_read_with_their_relations() -> None:
    core = read(FIGURE_2)
    assert {term.local_name: term.kind for term in core.terms.values()}["Domain"] == "class"
    domain = read(FIGURE_3)
    intent, concept = domain.terms[f"{CS}TranslateTechDoc"], domain.terms[f"{CS}LargeLanguageModel"]
    assert intent.requires == (f"{CS}TechTranslation",)
    assert intent.applies_to == concept.in_domain == (f"{CS}ComputerScience",)
    assert concept.abbreviations == ("LLM",)
    assert read(FIGURE_4).terms["https://ex.org/onto/law#MasterOfLaws"].abbreviations == ("LL.M.", "LLM")


def test_terms_of_the_figures_other_bases_and_inverse_properties_are_read() -> None:
    term = read(FIGURE_6, "jsonld").terms[f"{CS}TechTranslation"]
    assert term.types == ("https://ex.org/ioa/semantic#Capability",)
    assert term.labels == ("Technical Document Translation",)
    assert term.inputs == term.outputs == ("text/plain",)
    text = FIGURE_3.replace("https://ex.org/ioa/", "https://acme.example/ioa/")
    ontology = read(text, namespace=Namespace("https://acme.example/"))
    assert ontology.terms[f"{CS}TranslateTechDoc"].requires == (f"{CS}TechTranslation",)
    assert read(text).terms[f"{CS}TranslateTechDoc"].requires == ()
    head = "@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix a: <https://ex.org/a#> . "
    found = read(head + "a:writes a owl:ObjectProperty ; owl:inverseOf a:by . a:by a owl:InverseFunctionalProperty .")
    assert found.terms["https://ex.org/a#writes"].inverses == ("https://ex.org/a#by",)
    assert found.terms["https://ex.org/a#by"].kind == "object_property"


def test_rdf_xml_of_owl_and_obo_is_read() -> None:
    ontology = read(OWL_XML, "rdfxml")
    terms = {term.local_name: term for term in ontology.terms.values()}
    assert (ontology.id, ontology.version) == ("http://human.example", "1.2")
    kinds = {"Arm": "class", "Limb": "class", "part": "object_property", "length": "data_property"}
    assert {name: term.kind for name, term in terms.items()} == {**kinds, "mine": "individual"}
    assert terms["Arm"].labels == ("Arm",)
    assert terms["Arm"].synonyms == (Synonym("upper limb", "exact"), Synonym("brachium", "related"))
    assert terms["Arm"].parents == ("http://human.example#Limb",)
    assert terms["Arm"].fillers == ("http://human.example#Body",)
    assert terms["part"].domains == ("http://human.example#Arm", "http://human.example#Limb")
    assert terms["part"].ranges == ("http://human.example#Body",)
    assert terms["Limb"].deprecated
    assert terms["mine"].types == ("http://human.example#Arm",)


def test_skos_is_read_with_english_labels_first() -> None:
    ontology = read(
        "@prefix s: <http://www.w3.org/2004/02/skos/core#> . <x:scheme> a s:ConceptScheme . <x:arm> a s:Concept ;"
        ' s:prefLabel "Arm"@en, "Aarm"@nds ; s:altLabel "limb" ; s:hiddenLabel "amr" ; s:broader <x:body> .',
        version="1",
    )
    term = ontology.terms["x:arm"]
    assert ontology.id == "x:scheme"
    assert (term.labels, term.synonyms) == (("Arm", "Aarm"), (Synonym("limb", "exact"), Synonym("amr", "hidden")))
    assert term.parents == ("x:body",)


def test_intersections_stand_above_the_class_and_agents_have_capabilities_of_both_directions() -> None:
    ontology = read(
        "@prefix o: <http://www.w3.org/2002/07/owl#> . <x:a> a o:Class ; o:equivalentClass <x:same> , [ a o:Class ;"
        " o:intersectionOf ( <x:b> [ a o:Restriction ; o:onProperty <x:p> ; o:someValuesFrom <x:c> ] ) ] ."
    )
    assert (ontology.terms["x:a"].parents, ontology.terms["x:a"].equivalents) == (("x:b",), ("x:same",))
    assert ontology.terms["x:a"].fillers == ("x:c",)
    ontology = read(
        "@prefix ioa: <https://ex.org/ioa/semantic#> . <x:a> a ioa:Agent ; ioa:hasCapability <x:c1> ."
        " <x:c2> a ioa:Capability ; ioa:providedBy <x:a> ."
    )
    assert ontology.agents == {"x:a": ("x:c1", "x:c2")}


@rows(
    "header, version",
    ('o:versionInfo "2.1"', "2.1"),
    ("o:versionIRI <http://x.example/onto/2026-03-01/onto.owl>", "2026-03-01"),
    ('o:versionInfo "releases/2026-03-01"', "2026-03-01"),
    ('o:versionInfo "a remark" ; o:versionIRI <http://x.example/v3.2>', "v3.2"),
    ('o:versionInfo "a remark"', "a remark"),
)
def test_version_is_taken_from_where_ontologies_write_it(header: str, version: str) -> None:
    text = f"@prefix o: <http://www.w3.org/2002/07/owl#> . <http://x.example/onto> a o:Ontology ; {header} ."
    assert read(text).version == version
    assert rules(text) == ([] if version != "a remark" else ["I107"])


def test_missing_identity_is_assumed_and_reported() -> None:
    assert read(FIGURE_3).id == "https://ex.org/onto/cs"
    assert rules(FIGURE_3) == ["I106", "I107"]
    assert rules(FIGURE_3, id="https://ex.org/onto/agent-core", version="1.0") == []
    two = "@prefix o: <http://www.w3.org/2002/07/owl#> . <x:a> a o:Ontology . <x:b> a o:Ontology ."
    assert rules(two, version="1") == ["I106"]


def test_names_beyond_the_limits_are_left_out_and_reported() -> None:
    labels = ", ".join(f'"label {number}"' for number in range(9))
    text = f"<x:a> a <x:T> ; <http://www.w3.org/2000/01/rdf-schema#label> {labels} , '{'y' * 300}' ."
    limits = OntologyLimits(labels=4, label=200)
    ontology, findings = read_ontology(text.encode(), "f", "turtle", id="x:o", version="1", limits=limits)
    assert ontology.terms["x:a"].labels == ("label 0", "label 1", "label 2", "label 3")
    assert [finding.rule for finding in findings] == ["I108"]


def test_many_findings_are_cut() -> None:
    label = f'<http://www.w3.org/2000/01/rdf-schema#label> "{"y" * 30}"'
    many = "\n".join(f"<x:{n}> a <x:T> ; {label} ." for n in range(99))
    assert len(rules(many, limits=OntologyLimits(label=10))) == 20


def test_shared_and_circular_lists_end() -> None:
    cells = " ".join(f"<x:m{number}>" for number in range(100))
    owl = "@prefix o: <http://www.w3.org/2002/07/owl#> . @prefix r: <http://www.w3.org/2000/01/rdf-schema#> ."
    users = "\n".join(f"<x:{number}> a o:Class ; r:subClassOf _:u ." for number in range(100))
    assert rules(f"{owl} _:u o:unionOf ( {cells} ) .\n{users}", limits=OntologyLimits(triples=1_000)) == ["I101"]
    rdf = "@prefix r: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . @prefix o: <http://www.w3.org/2002/07/owl#> ."
    text = f"{rdf} <x:p> a o:ObjectProperty ; <http://www.w3.org/2000/01/rdf-schema#domain> _:u . _:u o:unionOf _:l ."
    assert read(f"{text} _:l r:first <x:a>, _:u ; r:rest _:l .").terms["x:p"].domains == ("x:a",)


def test_work_grows_with_the_terms() -> None:
    def work(size: int) -> None:
        read("\n".join(f"<x:{n}> a <x:T> ; <http://www.w3.org/2000/01/rdf-schema#label> 'l{n}' ." for n in range(size)))

    assert_linear(work, 50)


def graph(*triples: Triple, limits: OntologyLimits = LIMITS) -> Graph:
    return Graph(triples, DEFAULT, "file", limits)


def test_english_and_plain_texts_come_first_and_once() -> None:
    label = f"{RDFS}label"
    found = graph(
        ("x:a", label, "Arm", "de"),
        ("x:a", label, "arm", "en-GB"),
        ("x:a", label, "arm", ""),
        ("x:a", label, "x:resource", None),
        ("x:a", "x:unknown", "other", ""),
    )
    assert found.texts("x:a", "labels") == ["arm", "Arm"]
    assert found.texts("x:b", "labels") == []


def test_operands_are_found_in_nested_unions_and_restrictions() -> None:
    found = graph(
        ("x:p", f"{RDFS}domain", "_:u", None),
        ("_:u", f"{OWL}unionOf", "_:1", None),
        ("_:1", f"{RDF}first", "x:a", None),
        ("_:1", f"{RDF}rest", "_:2", None),
        ("_:2", f"{RDF}first", "_:r", None),
        ("_:r", f"{OWL}someValuesFrom", "x:filler", None),
    )
    assert found.operands("x:p", "domains") == ({"x:a"}, {"x:filler"})
    assert found.named("x:p", "domains") == ()


def test_visits_of_shared_nodes_are_counted() -> None:
    cells = [("_:u", f"{OWL}unionOf", "_:0", None), *((f"_:{n}", f"{RDF}rest", f"_:{n + 1}", None) for n in range(9))]
    users = [(f"x:{n}", f"{RDFS}subClassOf", "_:u", None) for n in range(9)]
    shared = graph(*cells, *users, limits=OntologyLimits(triples=10))
    with pytest.raises(DocumentRefused, match="I101"):
        [shared.operands(f"x:{number}", "parents") for number in range(9)]


def test_ontology_is_loaded_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "cs.ttl"
    file.write_text(FIGURE_3)
    ontology, findings = load_ontology(file, id="https://ex.org/onto/cs", version="1.0")
    assert len(ontology.terms) == 4
    assert findings == []


def test_reading_stops_at_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "huge.ttl"
    with file.open("wb") as huge:
        huge.write(b"<x:a> <x:p> 1 .\n" * 10)
        huge.truncate(100 * 1024 * 1024)  # sparse: a file of 100 MB that takes no space
    found = read_bytes(file, OntologyLimits(size=4_096))
    assert isinstance(found, Diagnostic)
    assert found.rule == "I101"
    assert str(found.location) == f"{file}:11:1"


def test_missing_and_special_files_are_findings(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.ttl")
    for path in (tmp_path / "missing.ttl", tmp_path / "pipe.ttl", tmp_path, Path("a\0b")):
        ontology, [finding] = load_ontology(path)
        assert ontology is None
        assert finding.rule == "D101"
