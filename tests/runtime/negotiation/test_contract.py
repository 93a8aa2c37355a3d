"""Contracts of plans: never better than the steps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.runtime.negotiation.negotiating import CANCEL, FIND, LODGINGS

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import Composition
from bespeak.runtime.negotiation.plan import Plan, claims_better, explain, loosen, make_contract
from bespeak.runtime.negotiation.proposal import Proposal

SECRET = replace(FIND, path="/secrets", internal=True)


def plan(*endpoints: Endpoint, quality: float = 1.0) -> Plan:
    explanation = tuple(f"Calls {endpoint}, then reads {endpoint.path}." for endpoint in endpoints)
    return Plan(recipe=LODGINGS, endpoints=endpoints, quality=quality, explanation=explanation)


def proposal(*, is_brief: bool = False, impact: str = "informational", confidence: float = 1.0) -> Proposal:
    semantic = replace(FIND.semantic, impact=impact, confidence=confidence, is_idempotent=True)
    endpoint = replace(FIND, path="/lodgings", semantic=semantic, required_scopes=("a:b",))
    return Proposal(endpoint=endpoint, is_brief=is_brief)


def test_scopes_are_united_and_the_worse_claim_is_published() -> None:
    made = make_contract(proposal(confidence=0.9), plan(FIND, CANCEL, quality=0.8)).endpoint
    assert made.required_scopes == ("a:b", "stays:cancel")
    assert (made.semantic.impact, made.semantic.confidence) == ("irreversible", 0.8)
    cautious = make_contract(proposal(impact="reversible", confidence=0.1), plan(FIND)).endpoint
    assert (cautious.semantic.impact, cautious.semantic.confidence) == ("reversible", 0.1)


def test_brief_proposal_gets_what_the_plan_says() -> None:
    made = make_contract(proposal(is_brief=True), plan(CANCEL)).endpoint
    assert made.semantic.impact == "irreversible"
    assert not claims_better(proposal(is_brief=True), plan(CANCEL))


@pytest.mark.parametrize(("claim", "better"), [("informational", True), ("reversible", True), ("irreversible", False)])
def test_claim_of_less_impact_is_noticed(claim: str, better: bool) -> None:
    assert claims_better(proposal(impact=claim), plan(CANCEL)) is better


def test_recipe_gets_a_name_of_its_own_and_answers_no_other_proposal() -> None:
    made = make_contract(proposal(), plan(FIND))
    assert made.endpoint.handler == Composition(recipe=made.recipe.name)
    assert made.recipe.name != LODGINGS.name
    assert made.recipe.pattern == {}


def test_internal_endpoints_are_not_named() -> None:
    lines = explain(plan(FIND, SECRET))
    assert "FIND /rooms" in lines[0]
    assert "secrets" not in str(lines)
    assert "an internal step" in lines[1]


def test_counter_proposal_states_the_plan() -> None:
    made = make_contract(proposal(), plan(FIND), states_plan=True)
    assert made.endpoint.description == "Calls FIND /rooms, then reads /rooms."
    long = replace(FIND, path="/" + "x" * 600)
    assert len(make_contract(proposal(), plan(long), states_plan=True).endpoint.description) <= 500


def test_fields_become_optional_where_the_schema_itself_requires_them() -> None:
    row = {"type": "object", "properties": {"memo": {"type": "string"}}, "required": ["memo"]}
    schema = {"type": "object", "properties": {"rows": {"type": "array", "items": row}}, "required": ["rows"]}
    loose = loosen(schema, [("rows", "[]", "memo")])
    assert loose is not None
    assert loose["properties"]["rows"]["items"]["required"] == []
    assert row["required"] == ["memo"]
    assert loosen({**schema, "properties": {"rows": {"$ref": "#/$defs/rows"}}}, [("rows", "[]", "memo")]) is None
