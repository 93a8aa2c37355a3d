"""Policies decide about consistency rules only."""

from __future__ import annotations

from tests.documents.envelope.ontologies import meanings
from tests.documents.ontology.figures import FIGURE_5, FIGURE_9

from bespeak.checks.ontology.profile import ProfilePolicy, judge
from bespeak.contract.ontology.profile import Status
from bespeak.documents.envelope.reader import parse

CONFLICT = FIGURE_9["semantic"] | {"capabilityRefs": ["cs:TechTranslation"]}


def status(document: dict[str, object], policy: ProfilePolicy) -> Status:
    envelope = parse(document)
    return judge(envelope.profile, meanings(), policy, envelope.violations).status


def test_violations_of_consistency_follow_the_policy() -> None:
    assert status(CONFLICT, ProfilePolicy()) == "reject"
    assert status(CONFLICT, ProfilePolicy(consistency="renegotiate")) == "renegotiate"
    assert status(CONFLICT, ProfilePolicy(consistency="accept")) == "accept"
    assert status(CONFLICT, ProfilePolicy(rules={"I227": "renegotiate"})) == "renegotiate"


def test_worst_status_wins() -> None:
    both = CONFLICT | {"intentRef": "cs:Unknown"}
    assert status(both, ProfilePolicy(consistency="accept", rules={"I223": "renegotiate"})) == "renegotiate"
    assert status(both, ProfilePolicy(rules={"I223": "accept"})) == "reject"


def test_missing_member_rejects_under_every_policy() -> None:
    lenient = ProfilePolicy(consistency="accept", rules={"I206": "accept"})
    assert status({**FIGURE_5, "capabilityRefs": []}, lenient) == "reject"


def test_strict_policy_leaves_sub_domains_out() -> None:
    below = FIGURE_5 | {
        "profileContext": {
            "domain": "cs:ComputerScience",
            "termBindings": [{"term": "P", "sense": "cs:Perceptron"}],
        }
    }
    assert status(below, ProfilePolicy()) == "accept"
    assert status(below, ProfilePolicy(strict_domains=True)) == "reject"
