"""Plans: what a composition publishes is derived from its steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.cases import rows
from tests.extensions.negotiation.definitions import fields
from tests.extensions.negotiation.negotiating import CANCEL, FIND, LODGINGS
from tests.service import echo, make_endpoint

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import Composition
from bespeak.contract.recipe import Recipe, RecipeStep
from bespeak.extensions.negotiation.plan import Plan, Promises, explain, loosen, make_contract
from bespeak.extensions.negotiation.proposal import Proposal


def plan(*steps: tuple[str, bool, float, str], quality: float = 1.0) -> Plan:
    made = []
    for number, (impact, idempotent, confidence, scope) in enumerate(steps):
        one = make_endpoint("QUERY", f"/thing{number}", echo)
        semantic = replace(one.semantic, impact=impact, is_idempotent=idempotent, confidence=confidence)
        made.append(replace(one, semantic=semantic, required_scopes=(scope,)))
    recipe = Recipe(name="r", steps=tuple(RecipeStep(method=one.method, path=one.path) for one in made))
    return Plan(recipe=recipe, endpoints=tuple(made), quality=quality)


READ = ("informational", True, 0.9, "a:read")
HOLD = ("reversible", True, 0.8, "b:write")
SEND = ("irreversible", False, 1.0, "a:read")


def test_impact_scopes_confidence_and_idempotence_follow_from_the_steps() -> None:
    assert [plan(READ).impact, plan(READ, HOLD).impact, plan(HOLD, SEND, READ).impact] == [
        *("informational", "reversible", "irreversible")
    ]
    made = plan(READ, HOLD, quality=0.5)
    assert made.scopes == ("a:read", "b:write")
    assert made.confidence == pytest.approx(0.36)
    assert [plan(READ, HOLD).is_idempotent, plan(HOLD, HOLD).is_idempotent, plan(READ, SEND).is_idempotent] == [
        *(True, False, False)
    ]
    assert [plan(READ, quality=quality).is_certain for quality in (0.61, 0.62)] == [False, True]


NAME = {"type": "string", "enum": ["Ann", "Bob"], "maxLength": 20, "minLength": 1, "pattern": "^[A-Z]"}
ROW = fields(name=NAME, age={"type": "integer", "minimum": 0, "maximum": 150})


def people(row: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"people": {"type": "array", "items": row, **more}}, "required": ["people"]}


STEP = make_endpoint("QUERY", "/people", echo, output=people(ROW))


def promises(output: Any, **given: Any) -> Promises:
    return Promises(replace(STEP, input_schema=fields(**given), output_schema=output), [STEP])


@rows(
    "name",
    {"type": "string"},
    NAME,
    {"enum": ["Ann", "Bob", "Cleo"]},
    {"maxLength": 30},
    {"minLength": 0},
    {"oneOf": [{"type": "string"}, {"type": "null"}]},
    {"description": "not", "default": {"minItems": 1}},
)
def test_promises_that_a_step_makes_are_kept(name: Any) -> None:
    found = promises(people(fields(name=name)))
    assert (found.unkept, found.output) == ([], people(fields(name=name)))


@rows(
    "name, keyword",
    ({"enum": ["Ann"]}, "enum"),
    ({"const": "Ann"}, "const"),
    ({"maxLength": 10}, "maxLength"),
    ({"minLength": 2}, "minLength"),
    ({"pattern": "^A"}, "pattern"),
    ({"not": {"const": "Bob"}}, "not"),
    ({"oneOf": [{"type": "string"}, {"type": "string"}]}, "oneOf"),
    ({"if": {}, "then": {"minLength": 9}}, "if"),
)
def test_promises_that_no_step_makes_are_named_and_left_out(name: Any, keyword: str) -> None:
    found = promises(people(fields(name={"type": "string", **name})))
    assert f"`{keyword}` of `people[].name`" in found.unkept
    assert found.output == people(fields(name={"type": "string"}))


CITY = {"type": "string", "maxLength": 5}


@rows(
    "output, given, unkept",
    (people(ROW, minItems=1), {}, ["`minItems` of `people`"]),
    (people(fields(age={"type": "string", "enum": ["Ann", "Bob"]})), {}, ["`enum` of `people[].age`"]),
    ({**people(ROW), "minProperties": 2}, {}, ["`minProperties` of the output"]),
    (fields(city=CITY), {"city": CITY}, []),
    ids=["number of rows", "promise of another field", "whole output", "value that is given"],
)
def test_promises_of_rows_of_other_fields_and_of_the_output(output: Any, given: Any, unkept: list[str]) -> None:
    assert promises(output, **given).unkept == unkept


def test_promises_of_definitions_and_brief_proposals_are_those_of_the_plan() -> None:
    output = {**people(fields(name={"$ref": "#/$defs/name"})), "$defs": {"name": NAME}}
    assert promises(output).unkept == []
    assert promises({**output, "$defs": {"name": {"enum": ["Cleo"]}}}).unkept == ["`enum` of `name`"]
    assert make_contract(proposal(is_brief=True), contract_plan(CANCEL)).endpoint.semantic.impact == "irreversible"
    assert not contract_plan(CANCEL).is_worse_than(proposal(is_brief=True))


def test_required_field_that_is_not_described_is_not_promised() -> None:
    output = people({**ROW, "required": ["name", "shoe_size"]})
    found = promises(output)
    assert (found.unkept, found.output) == (["`shoe_size` of `people[]`"], people({**ROW, "required": ["name"]}))
    anywhere = {"allOf": [people(ROW)], "required": ["people"]}
    assert promises(anywhere).unkept == []
    assert promises({"properties": {"people": True}, "required": ["people"]}).unkept == []


SECRET = replace(FIND, path="/secrets", internal=True)


def contract_plan(*endpoints: Endpoint, quality: float = 1.0) -> Plan:
    explanation = tuple(f"Calls {endpoint}, then reads {endpoint.path}." for endpoint in endpoints)
    return Plan(recipe=LODGINGS, endpoints=endpoints, quality=quality, explanation=explanation)


def proposal(*, is_brief: bool = False, impact: str = "informational", confidence: float = 1.0) -> Proposal:
    semantic = replace(FIND.semantic, impact=impact, confidence=confidence, is_idempotent=True)
    endpoint = replace(FIND, path="/lodgings", semantic=semantic, required_scopes=("a:b",))
    return Proposal(endpoint=endpoint, is_brief=is_brief)


def test_scopes_are_united_and_the_worse_claim_is_published() -> None:
    made = make_contract(proposal(confidence=0.9), contract_plan(FIND, CANCEL, quality=0.8)).endpoint
    assert made.required_scopes == ("a:b", "stays:cancel")
    assert (made.semantic.impact, made.semantic.confidence) == ("irreversible", 0.8)
    cautious = make_contract(proposal(impact="reversible", confidence=0.1), contract_plan(FIND)).endpoint
    assert (cautious.semantic.impact, cautious.semantic.confidence) == ("reversible", 0.1)


@pytest.mark.parametrize(("claim", "better"), [("informational", True), ("reversible", True), ("irreversible", False)])
def test_claim_of_less_impact_is_noticed(claim: str, better: bool) -> None:
    assert contract_plan(CANCEL).is_worse_than(proposal(impact=claim)) is better


def test_recipe_gets_a_name_of_its_own_and_answers_no_other_proposal() -> None:
    made = make_contract(proposal(), contract_plan(FIND))
    assert made.endpoint.handler == Composition(recipe=made.recipe.name)
    assert made.recipe.name != LODGINGS.name
    assert made.recipe.pattern == {}


def test_counter_proposal_states_the_plan_without_internal_endpoints() -> None:
    lines = explain(contract_plan(FIND, SECRET))
    assert "FIND /rooms" in lines[0]
    assert "secrets" not in str(lines)
    assert "an internal step" in lines[1]
    made = make_contract(proposal(), contract_plan(FIND), states_plan=True)
    assert made.endpoint.description == "Calls FIND /rooms, then reads /rooms."
    long = replace(FIND, path="/" + "x" * 600)
    assert len(make_contract(proposal(), contract_plan(long), states_plan=True).endpoint.description) <= 500


def test_fields_become_optional_where_the_schema_itself_requires_them() -> None:
    row = {"type": "object", "properties": {"memo": {"type": "string"}}, "required": ["memo"]}
    schema = {"type": "object", "properties": {"rows": {"type": "array", "items": row}}, "required": ["rows"]}
    assert loosen(schema, [("rows", "[]", "memo")])["properties"]["rows"]["items"]["required"] == []
    assert row["required"] == ["memo"]
    assert loosen({**schema, "properties": {"rows": {"$ref": "#/$defs/rows"}}}, [("rows", "[]", "memo")]) is None
