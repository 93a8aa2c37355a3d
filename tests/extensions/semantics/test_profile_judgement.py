"""Compiled checks judge profiles as the published shapes do, with pyshacl as the oracle."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import check_each
from tests.extensions.semantics.envelope.ontologies import AI, CLINICAL, TEXTS, meanings
from tests.extensions.semantics.envelope.payloads import BASE, SPACES, iris
from tests.extensions.semantics.ontology.figures import FIGURE_5, FIGURE_7, FIGURE_8, FIGURE_9
from tests.extensions.semantics.ontology.oracle import violated

from bespeak.extensions.semantics.envelope.reader import parse
from bespeak.extensions.semantics.profile import ProfilePolicy, Registration, Status, Verdict, judge, judge_agents
from bespeak.extensions.semantics.terms import Term

CS = "https://ex.org/onto/cs#"


def verdict(document: dict[str, Any], *texts: str) -> Verdict:
    envelope = parse(document)
    return judge(envelope.profile, meanings(*texts), found=envelope.violations)


def broken(document: dict[str, Any], *texts: str) -> set[str]:
    return {one.rule for one in verdict(document, *texts).violations}


def test_figures_are_judged_as_the_draft_and_the_shapes_say() -> None:
    for figure in (FIGURE_5, FIGURE_7, FIGURE_8["semantic"]):
        assert verdict(figure).status == "accept"
        assert violated(figure, *TEXTS) == set()
    assert broken(FIGURE_9["semantic"]) == violated(FIGURE_9["semantic"], *TEXTS) == {"I206", "I224", "I227"}


def test_figure_9_is_rejected_with_its_reason() -> None:
    found = verdict(FIGURE_9["semantic"])
    assert {"status": found.status, "reason": found.reason} == FIGURE_9["semantic"]["validation"]
    conflict = found.violations[-1]
    assert (conflict.rule, conflict.path) == ("I227", "/profileContext/termBindings/0/sense")
    assert conflict.value == "https://ex.org/onto/law#MasterOfLaws"
    assert "another domain" in conflict.message


def changed(**members: Any) -> dict[str, Any]:
    document = FIGURE_5 | {"@context": [BASE, SPACES]} | members
    return {name: value for name, value in document.items() if value is not None}


def bound(sense: str, domain: str = "cs:ComputerScience") -> dict[str, Any]:
    return changed(profileContext={"domain": domain, "termBindings": [{"term": "LLM", "sense": sense}]})


CASES: list[tuple[dict[str, Any], set[str]]] = [
    (changed(type="ioa:Intent"), {"I203"}),
    (changed(ontologyId=None), {"I204"}),
    (changed(ontologyVersion=None), {"I205"}),
    (changed(capabilityRefs=None), {"I206", "I224"}),
    (changed(intentRef=None), {"I207"}),
    (changed(profileVersion=["1", "2"]), {"I208"}),
    (changed(capabilityRefs=["cs:TechTranslation", "cs:LargeLanguageModel"]), {"I222"}),
    (changed(intentRef="cs:TechTranslation"), {"I223"}),
    (changed(capabilityRefs=["cs:Translation"]), set()),  # covers the capability below it
    (changed(intentRef="cs:Study"), {"I225"}),
    (bound("cs:LargeLanguageModel", "law:Law"), {"I225", "I227"}),
    (bound("cs:TechTranslation"), {"I226"}),
    (bound("cs:Unknown"), {"I226"}),
    (bound("cs:Homeless"), {"I226"}),
    (bound("cs:Perceptron"), set()),  # two domains below
    (bound("cs:Perceptron", "cs:AI"), set()),
    (bound("cs:LargeLanguageModel", "cs:AI"), {"I227"}),
]


@pytest.mark.requirement("IOA-5.4-3", "IOA-5.4-4")
def test_each_rule_is_broken_in_both_validators() -> None:
    def check(case: tuple[dict[str, Any], set[str]]) -> None:
        document, rules = case
        assert broken(document) - ({"I222", "I223"} if rules == {"I203"} else set()) == rules
        # The shapes of the consistency rules hold for profiles; without the type there is none.
        assert violated(document, *TEXTS) == rules

    check_each(CASES, check, lambda case: sorted(case[1]))


some = st.lists(iris, min_size=1, max_size=3)
profiles = st.fixed_dictionaries(
    {"capabilityRefs": some, "intentRef": iris},
    optional={
        "ontologyId": st.none(),
        "ontologyVersion": st.sampled_from([None, "2"]),
        "profileContext": st.fixed_dictionaries(
            {},
            optional={
                "domain": iris,
                "termBindings": st.lists(iris.map(lambda sense: {"term": "LLM", "sense": sense}), max_size=3),
            },
        ),
    },
)


@settings(max_examples=60, deadline=None)
@given(profiles)
def test_generated_profiles_break_the_same_rules_in_both_validators(members: dict[str, Any]) -> None:
    document = changed(**members)
    assert broken(document) == violated(document, *TEXTS)


def test_cyclic_hierarchies_end() -> None:
    cycle = (
        AI
        + """ cs:ComputerScience ioa:subDomainOf cs:Learning .
    cs:Translation rdfs:subClassOf cs:TechTranslation .
    cs:A a ioa:Domain ; ioa:subDomainOf cs:A ."""
    )
    document = bound("law:MasterOfLaws")
    assert broken(document, *TEXTS, cycle) == {"I227"}


def test_capabilities_of_agents_are_checked_against_declarations_and_ontologies() -> None:
    own = Term(iri=f"{CS}Own", kind="individual")
    agents = {f"{CS}robot": (f"{CS}TechTranslation", f"{CS}Own", f"{CS}TranslateTechDoc")}
    (found,) = judge_agents(Registration((own,), agents), meanings())
    assert (found.rule, found.value) == ("I221", f"{CS}TranslateTechDoc")
    assert judge_agents(Registration((own,), {f"{CS}robot": (f"{CS}Own",)}), meanings(CLINICAL)) == []


def test_nothing_to_judge_is_rejected_for_what_was_found() -> None:
    envelope = parse({})
    found = judge(envelope.profile, meanings(), found=envelope.violations)
    assert (found.status, [one.rule for one in found.violations]) == ("reject", ["I201"])


CONFLICT = FIGURE_9["semantic"] | {"capabilityRefs": ["cs:TechTranslation"]}


def status(document: dict[str, object], policy: ProfilePolicy) -> Status:
    envelope = parse(document)
    return judge(envelope.profile, meanings(), policy, envelope.violations).status


def test_worst_status_wins_and_only_consistency_follows_the_policy() -> None:
    assert status(CONFLICT, ProfilePolicy()) == "reject"
    assert status(CONFLICT, ProfilePolicy(consistency="renegotiate")) == "renegotiate"
    assert status(CONFLICT, ProfilePolicy(consistency="accept")) == "accept"
    assert status(CONFLICT, ProfilePolicy(rules={"I227": "renegotiate"})) == "renegotiate"
    both = CONFLICT | {"intentRef": "cs:Unknown"}
    assert status(both, ProfilePolicy(consistency="accept", rules={"I223": "renegotiate"})) == "renegotiate"
    assert status(both, ProfilePolicy(rules={"I223": "accept"})) == "reject"
    lenient = ProfilePolicy(consistency="accept", rules={"I206": "accept"})
    assert status({**FIGURE_5, "capabilityRefs": []}, lenient) == "reject"


def test_strict_policy_leaves_sub_domains_out() -> None:
    below = FIGURE_5 | {
        "profileContext": {"domain": "cs:ComputerScience", "termBindings": [{"term": "P", "sense": "cs:Perceptron"}]}
    }
    assert status(below, ProfilePolicy()) == "accept"
    assert status(below, ProfilePolicy(strict_domains=True)) == "reject"
