"""hasCapability relates agents and capabilities, also across ontologies."""

from __future__ import annotations

import pytest
from tests.documents.ontology.figures import FIGURE_3, PREFIXES
from tests.documents.ontology.oracle import violated

from bespeak.checks.ontology.registration import check_consistency
from bespeak.contract.ontology.ontology import Ontology
from bespeak.documents.ontology.reader import read_ontology

GOOD = f"{PREFIXES} cs:a a ioa:Agent ; ioa:hasCapability cs:TechTranslation ."


def read(text: str) -> Ontology:
    ontology, _ = read_ontology(text.encode(), "f.ttl")
    assert ontology is not None
    return ontology


CASES = {
    "good": (GOOD, 0),
    "task": (GOOD.replace("ioa:Agent", "ioa:Task"), 1),
    "domain": (GOOD.replace("cs:TechTranslation", "cs:ComputerScience"), 1),
    "both": (GOOD.replace("ioa:Agent", "ioa:Task").replace("cs:TechTranslation", "cs:Nothing"), 2),
    "subclass": (
        f"{PREFIXES} cs:Bot rdfs:subClassOf ioa:Agent . cs:b a cs:Bot ; ioa:hasCapability cs:TechTranslation .",
        0,
    ),
}


@pytest.mark.requirement("IOA-5.4-2")
@pytest.mark.parametrize("name", CASES)
def test_range_is_checked_as_the_published_shapes_do(name: str) -> None:
    text, count = CASES[name]
    found = list(check_consistency(read(text), [read(FIGURE_3)]))
    assert [finding.rule for finding in found] == ["I221"] * count
    assert bool(count) == bool(violated(None, FIGURE_3, text))


def test_finding_names_agent_and_value() -> None:
    [finding] = check_consistency(read(CASES["domain"][0]), [read(FIGURE_3)])
    assert finding.severity == "warning"
    assert finding.message == (
        "ioa:hasCapability of 'https://ex.org/onto/cs#a' must relate an ioa:Agent to an ioa:Capability; "
        "'https://ex.org/onto/cs#ComputerScience' is not an ioa:Capability"
    )
