"""Only a document with an id, a comparable version and without errors becomes a registration."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cases import rows
from tests.extensions.semantics.ontology.figures import FIGURE_3, PREFIXES
from tests.extensions.semantics.ontology.oracle import violated

from bespeak.extensions.semantics.ontology import registration
from bespeak.extensions.semantics.ontology.contexts import OntologyLimits
from bespeak.extensions.semantics.ontology.registration import (
    Judged,
    content_digest,
    judge_registration,
)
from bespeak.extensions.semantics.store import decompress
from bespeak.state.identity.signed_document import ArtifactStatement

CS = "https://ex.org/onto/cs"


def judge(text: str, **given: Any) -> Judged:
    return judge_registration(text.encode(), "cs.ttl", **given)


def test_document_becomes_a_command_with_its_digest_also_with_warnings() -> None:
    judged = judge(FIGURE_3, id=CS, version="1.0")
    assert judged.findings == []
    command = judged.command
    assert (command.kind, command.id, command.version, command.source) == ("ontology", CS, "1.0", "cs.ttl")
    assert content_digest(decompress(command.content)) == command.digest
    assert judged.statement == ArtifactStatement("ontology", CS, "1.0", command.digest)
    judged = judge(f"{PREFIXES} cs:a a ioa:Task ; ioa:hasCapability cs:b .", id=CS, version="1.0")
    assert [finding.rule for finding in judged.findings] == ["I221"]
    assert judged.command is not None


@rows(
    "text, given, rules",
    (FIGURE_3, {}, ["I106", "I107"]),
    (FIGURE_3, {"id": CS, "version": "latest"}, ["I107"]),
    (FIGURE_3, {"id": "relative", "version": "1"}, ["I103"]),
    ("<x:a> <x:p>", {}, ["I102"]),
    (FIGURE_3, {"id": CS, "version": "1", "limits": OntologyLimits(triples=2)}, ["I101"]),
    ("\n".join(f"_:a{n} <x:p> _:a{n + 1} ." for n in range(900)), {"id": CS, "version": "1"}, ["I110"]),
)
def test_unfit_document_is_refused_with_errors(text: str, given: dict[str, Any], rules: list[str]) -> None:
    judged = judge(text, **given)
    assert judged.command is None
    assert [finding.rule for finding in judged.findings if finding.severity == "error"] == rules


def test_content_beyond_the_limit_of_the_store_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration, "MOST_CONTENT", 100)
    judged = judge(FIGURE_3, id=CS, version="1.0")
    assert (judged.command, judged.findings[-1].rule) == (None, "I101")


GOOD = f"{PREFIXES} cs:a a ioa:Agent ; ioa:hasCapability cs:TechTranslation ."


CASES = {
    "good": (GOOD, 0),
    "task": (GOOD.replace("ioa:Agent", "ioa:Task"), 1),
    "domain": (GOOD.replace("cs:TechTranslation", "cs:ComputerScience"), 1),
    "both": (GOOD.replace("ioa:Agent", "ioa:Task").replace("cs:TechTranslation", "cs:LargeLanguageModel"), 2),
    "elsewhere": (GOOD.replace("cs:TechTranslation", "cs:Nothing"), 0),
    "subclass": (
        f"{PREFIXES} cs:Bot rdfs:subClassOf ioa:Agent . cs:b a cs:Bot ; ioa:hasCapability cs:TechTranslation .",
        0,
    ),
}


@pytest.mark.requirement("IOA-5.4-2")
@pytest.mark.parametrize("name", CASES)
def test_range_is_checked_as_the_published_shapes_do(name: str) -> None:
    text, count = CASES[name]
    found = judge(f"{FIGURE_3}\n{text}", id=CS, version="1.0").findings
    assert [finding.rule for finding in found] == ["I221"] * count
    # What another ontology may declare is not judged here.
    assert name == "elsewhere" or bool(count) == bool(violated(None, FIGURE_3, text))


def test_finding_names_agent_and_value() -> None:
    [finding] = judge(f"{FIGURE_3}\n{CASES['domain'][0]}", id=CS, version="1.0").findings
    assert finding.severity == "warning"
    assert finding.message == (
        "ioa:hasCapability of 'https://ex.org/onto/cs#a' must relate an ioa:Agent to an ioa:Capability; "
        "'https://ex.org/onto/cs#ComputerScience' is not an ioa:Capability"
    )
