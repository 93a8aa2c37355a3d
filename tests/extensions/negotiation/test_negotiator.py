"""PROPOSE from the body to the answer, and the call of what was approved."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.extensions.negotiation.definitions import SEMANTIC, definition, fields
from tests.extensions.negotiation.negotiating import (
    FIND,
    LODGINGS,
    OTHER,
    SESSION,
    given,
    lodgings,
    negotiating,
    recipe,
    refunds,
)
from tests.service import echo, make_endpoint
from tests.stateful import StatefulBench

from bespeak.contract.limits import Rate
from bespeak.contract.policy import MethodPolicy
from bespeak.extensions.negotiation.methods import Negotiator
from bespeak.protocol.exchange.instant import read_instant

pytestmark = pytest.mark.anyio

CANCELLING = {"authority_scope": "stays:cancel"}


@pytest.mark.requirement("API-10.3-8", "CORE-4.6-3", "API-17.2-4")
async def test_approved_proposal_is_called_at_once(bench: StatefulBench) -> None:
    approved = await bench.send("PROPOSE", "/", {"endpoint": lodgings()})
    assert approved.status == 263
    assert approved.header("Content-Type") == "application/vnd.agtp.endpoint+json"
    found = await bench.send("FIND", "/lodgings", {"town": "Rome"})
    assert (found.status, found.json) == (200, {"rooms": [{"number": "12", "city": "Rome"}]})
    assert found.header("Contract-Synthesized") == approved.json["synthesis_id"]
    assert (await bench.send("FIND", "/lodgings", {"city": "Rome"})).status == 422


@pytest.mark.requirement("API-10.2-3", "AGIS-2-2")
async def test_approval_carries_the_contract_wherever_clients_look_for_it(bench: StatefulBench) -> None:
    body = (await bench.send("PROPOSE", "/", lodgings())).json
    definition = body["endpoint"]
    assert {name: body[name] for name in definition} == definition
    assert {name: body["instantiated_endpoint"][name] for name in definition} == definition
    assert body["instantiated_endpoint"]["proposed"] is True
    assert body["instantiated_endpoint"]["expires"] == "session"
    assert definition["input_schema"] == lodgings()["input_schema"]
    assert definition["handler"] == {"type": "composition"}
    assert "composition_failed" in definition["errors"]
    assert body["proposal_id"].removeprefix("prop-") == body["synthesis_id"].removeprefix("syn-")
    assert body["negotiation_id"]
    assert (body["persistent"], body["granted_duration"]) == (False, "1h")
    assert read_instant(body["expires_at"])
    assert body["plan"] == ["Calls FIND /rooms."]


async def test_the_same_contract_proposed_twice_is_the_same_synthesis(bench: StatefulBench) -> None:
    first = await bench.send("PROPOSE", "/", lodgings())
    again = await bench.send("PROPOSE", "/", {"parameters": {"proposal": lodgings()}})
    assert (again.status, again.json["synthesis_id"]) == (263, first.json["synthesis_id"])
    other = await bench.send("PROPOSE", "/", lodgings(), agent=OTHER)
    assert other.json["synthesis_id"] != first.json["synthesis_id"]


async def test_reference_forms_are_answered_by_operators_recipes() -> None:
    audit = recipe("/", ("FIND", "/rooms"), "AUDIT", city=given("subject"))
    async with negotiating(recipes=(audit,)) as bench:
        approved = await bench.send("PROPOSE", "/", {"name": "AUDIT", "parameters": {"subject": "string"}})
        assert (approved.status, approved.json["method"], approved.json["path"]) == (263, "AUDIT", "/")
        assert approved.json["semantic"]["impact"] == "informational"
        named = {"synthesis_id": approved.json["synthesis_id"]}
        assert (await bench.send("AUDIT", "/", {"subject": "Rome"}, **named)).json["rooms"][0]["city"] == "Rome"


@pytest.mark.requirement("API-10.3-5", "API-10.3-6", "API-10.3-7", "API-13.1-7")
async def test_evaluations_are_made_in_their_order() -> None:
    wrong: list[tuple[int, dict[str, Any]]] = [
        (459, {"method": "FINDE"}),
        (460, {"path": "/rooms/query"}),
        (400, {"semantic": {**SEMANTIC, "impact": "none"}}),
        (400, {"input_schema": {"type": "none"}}),
        (262, {"required_scopes": ["rooms:all"]}),
    ]
    async with negotiating(policies={"methods": _without_find()}) as bench:
        for number, (status, _) in enumerate(wrong):
            changes = {name: value for _, flaw in wrong[number:] for name, value in flaw.items()}
            assert (await bench.send("PROPOSE", "/", lodgings(**changes))).status == status
        impossible = await bench.send("PROPOSE", "/", lodgings(path="/nowhere"))
        assert (impossible.status, impossible.json["reason"]) == (463, "composition-impossible")
        assert (await bench.send("PROPOSE", "/", lodgings())).gives("reason") == (463, "policy-refused")


def _without_find() -> Any:
    return MethodPolicy(disallow=("FIND",))


@pytest.mark.requirement("API-10.4-1", "API-10.4-2", "API-10.4-3", "API-16.2-1", "CORE-10.1-16", "CORE-2.3-13")
async def test_missing_authority_of_a_step_is_262_before_anything_runs(bench: StatefulBench) -> None:
    refused = await bench.send("PROPOSE", "/", refunds())
    assert (refused.status, refused.error["type"]) == (262, "scope-required")
    assert refused.error["missing_scopes"] == ["stays:cancel"]
    negotiation_id = refused.header("Negotiation-ID")
    assert negotiation_id
    approved = await bench.send("PROPOSE", "/", refunds(), negotiation_id=negotiation_id, **CANCELLING)
    assert (approved.status, approved.header("Negotiation-ID")) == (263, negotiation_id)
    assert approved.json["required_scopes"] == ["stays:cancel"]
    # Scopes are checked again at each call.
    assert (await bench.send("REFUND", "/refunds", {"stay": "7"})).status == 455
    assert (await bench.send("REFUND", "/refunds", {"stay": "7"}, **CANCELLING)).json == {"cancelled": "7"}


async def test_anonymous_caller_is_asked_for_credentials_where_a_step_needs_scopes(bench: StatefulBench) -> None:
    assert (await bench.send("PROPOSE", "/", refunds(), agent=None)).told("type") == (262, "credentials-missing")


async def test_agent_without_any_scope_gets_none_by_proposing() -> None:
    async with negotiating(policies={"scope_required_for_invocation": True}) as bench:
        assert (await bench.send("PROPOSE", "/", lodgings())).told("type") == (262, "scope-required")
        assert (await bench.send("PROPOSE", "/", lodgings(), authority_scope="a:b")).status == 263


@pytest.mark.parametrize("claim", ["informational", "reversible"])
async def test_claim_of_less_impact_is_refused_with_honest_counter_proposal(bench: StatefulBench, claim: str) -> None:
    refused = await bench.send("PROPOSE", "/", refunds(claim), **CANCELLING)
    assert (refused.status, refused.json["reason"]) == (463, "policy-refused")
    counter = refused.json["counter_proposal"]
    assert counter["semantic"]["impact"] == "irreversible"
    negotiation_id = refused.json["negotiation_id"]
    accepted = await bench.send("PROPOSE", "/", counter, negotiation_id=negotiation_id, **CANCELLING)
    assert (accepted.status, accepted.json["semantic"]["impact"]) == (263, "irreversible")


async def test_what_a_plan_says_better_than_the_proposer_is_not_published() -> None:
    semantic = {**SEMANTIC, "confidence": 0.3, "impact": "reversible", "is_idempotent": False}
    async with negotiating() as bench:
        published = (await bench.send("PROPOSE", "/", lodgings(semantic=semantic))).json["semantic"]
        assert (published["confidence"], published["impact"], published["is_idempotent"]) == (0.3, "reversible", False)
        boasting = {**SEMANTIC, "confidence": 1.0}
        assert (await bench.send("PROPOSE", "/", lodgings(semantic=boasting))).json["semantic"]["confidence"] == 1.0


async def test_existing_endpoint_is_named_and_its_contract_would_be_accepted(bench: StatefulBench) -> None:
    refused = await bench.send("PROPOSE", "/", definition(path="/rooms"))
    assert (refused.status, refused.json["reason"]) == (463, "policy-refused")
    similar = refused.json["similar_endpoints"][0]
    assert (similar["method"], similar["path"]) == ("FIND", "/rooms")
    assert (await bench.send("PROPOSE", "/", refused.json["counter_proposal"])).gives("path") == (263, "/rooms")
    assert (await bench.send("FIND", "/rooms", {"city": "Rome"})).status == 200


@pytest.mark.parametrize("sends_id", [True, False])
async def test_agent_must_escalate_after_three_rejections(bench: StatefulBench, sends_id: bool) -> None:
    headers: dict[str, str] = {}
    for turn in (1, 2, 3):
        body = definition(description=f"Finds cheap rooms, {turn}.")
        refused = await bench.send("PROPOSE", "/", body, **headers)
        assert (refused.status, refused.json["rejections"]) == (463, turn)
        assert refused.json.get("must_escalate", False) is (turn == 3)
        if sends_id:
            headers["negotiation_id"] = refused.json["negotiation_id"]
    fourth = await bench.send("PROPOSE", "/", definition(description="Finds them at last."), **headers)
    assert (fourth.status, fourth.json["must_escalate"]) == (463, True)
    assert "ESCALATE" in fourth.json["explanation"]
    assert "proposal_id" not in fourth.json
    if sends_id:
        elsewhere = await bench.send("PROPOSE", "/", definition(path="/elsewhere"), **headers)
        assert elsewhere.json["must_escalate"], "the negotiation is the same"
    else:
        assert "must_escalate" not in (await bench.send("PROPOSE", "/", definition(path="/elsewhere"))).json
    assert (await bench.send("PROPOSE", "/", definition(), agent=OTHER, **headers)).json["rejections"] == 1


@pytest.mark.parametrize("negotiation_id", ["a b", "x" * 200])
async def test_negotiation_id_that_no_server_issues_is_400(bench: StatefulBench, negotiation_id: str) -> None:
    refused = await bench.send("PROPOSE", "/", lodgings(), negotiation_id=negotiation_id)
    assert (refused.status, refused.error["code"]) == (400, "invalid-negotiation-id")


async def test_proposals_of_an_agent_are_limited() -> None:
    async with negotiating(rate=Rate(1, "min", 2)) as bench:
        assert [(await bench.send("PROPOSE", "/", {})).status for _ in range(3)] == [400, 400, 429]
        assert (await bench.send("PROPOSE", "/", {}, agent=OTHER)).status == 400
        refused = await bench.send("PROPOSE", "/", {})
        assert refused.error["code"] == "proposals-rate-limited"
        assert refused.header("Retry-After")


async def test_agents_of_one_address_and_living_syntheses_are_limited() -> None:
    async with negotiating(rate=Rate(1, "h", 1)) as bench:
        agents = [f"{number:064x}" for number in range(1, 12)]
        answers = [(await bench.send("PROPOSE", "/", {}, agent=agent)).status for agent in agents]
        assert answers == [400] * 10 + [429]
    async with negotiating(most_live=1) as bench:
        assert (await bench.send("PROPOSE", "/", lodgings())).status == 263
        full = await bench.send("PROPOSE", "/", lodgings(description="Finds more lodgings."))
        assert (full.status, full.error["code"]) == (429, "too-many-syntheses")


async def test_proposals_of_an_agent_are_judged_in_turn(bench: StatefulBench, monkeypatch: pytest.MonkeyPatch) -> None:
    proposing = bench.bench.server.part("negotiation")
    assert isinstance(proposing, Negotiator)
    begun, done = asyncio.Event(), asyncio.Event()
    evaluate = proposing._evaluate

    async def wait(*arguments: Any) -> Any:
        begun.set()
        await done.wait()
        return await evaluate(*arguments)

    monkeypatch.setattr(proposing, "_evaluate", wait)
    first = asyncio.create_task(bench.send("PROPOSE", "/", lodgings()))
    await begun.wait()
    assert (await bench.send("PROPOSE", "/", lodgings())).refusal == (429, "proposal-in-progress")
    done.set()
    assert (await first).status == 263
    assert (await bench.send("PROPOSE", "/", lodgings())).status == 263


@pytest.mark.parametrize(
    "path",
    ["/products//x", "/../x", "/a/./b", "/a/%2e%2e/b", "/a/%2F/b", "/ro%6Fms", "/a/%c3%a9", "/a/%ff", "/%7Bid%7D//x"],
)
async def test_path_that_others_normalize_is_never_read_as_another_one(path: str) -> None:
    async with negotiating(recipes=(replace(LODGINGS, pattern={"name_exact": "FIND"}),)) as bench:
        refused = await bench.send("PROPOSE", "/", lodgings(path=path))
        assert (refused.status, refused.json["reason"]) == (463, "policy-refused")
        assert path in refused.json["explanation"]
        assert "counter_proposal" not in refused.json


VARIANTS = (
    *("/Rooms", "/ROOMS", "/ro-oms", "/ro_oms", "/rooms-", "/r00ms", "/rooms%20", "/Rooms/cheap", "/r%D0%BEoms"),
    *("/r%6Foms", "/r%C3%B6oms", "/%EF%BD%92ooms", "/roo%D0%BCs/{id}", "/Methods", "/PROPOSALS/{id}"),
)


@pytest.mark.parametrize("method", ["FIND", "LIST"])
@pytest.mark.parametrize("path", VARIANTS)
async def test_path_that_looks_like_one_of_the_operator_is_refused(path: str, method: str) -> None:
    anything = replace(LODGINGS, pattern={"name_exact": method})
    async with negotiating(recipes=(anything,), persistent=True) as bench:
        given = fields("town", "id") if "{id}" in path else fields("town")
        refused = await bench.send("PROPOSE", "/", lodgings(method=method, path=path, input_schema=given))
        assert (refused.status, refused.json.get("reason")) == (463, "policy-refused"), refused.json
        assert "counter_proposal" not in refused.json


@pytest.mark.parametrize("path", ["/rooms/cheap", "/rooms", "/roomy", "/inns/Rooms"])
async def test_path_that_only_begins_like_one_of_the_operator_is_accepted(path: str) -> None:
    async with negotiating(recipes=(replace(LODGINGS, pattern={"name_exact": "LIST"}),)) as bench:
        assert (await bench.send("PROPOSE", "/", lodgings(method="LIST", path=path))).status == 263


async def test_spelling_of_an_internal_path_is_not_told() -> None:
    secret = replace(make_endpoint("FIND", "/vaults", echo, scopes=("vaults:read",)), internal=True)
    async with negotiating(FIND, secret, recipes=(replace(LODGINGS, pattern={"name_exact": "FIND"}),)) as bench:
        assert (await bench.send("PROPOSE", "/", lodgings(path="/Vaults"))).status == 263


@pytest.mark.parametrize("path", ["/Lodgings", "/lodgings_", "/a/%20b", "/a/%C3%A9", "/~a/!$&'()*+,;=:@"])
async def test_path_is_read_exactly_as_proposed(path: str) -> None:
    async with negotiating(recipes=(replace(LODGINGS, pattern={"name_exact": "FIND"}),)) as bench:
        assert (await bench.send("PROPOSE", "/", lodgings(path=path))).gives("path") == (263, path)
        assert (await bench.send("FIND", path, {"town": "Rome"})).status == 200
        assert (await bench.send("FIND", "/lodgings", {"town": "Rome"})).status == 404


@pytest.mark.parametrize("part", ["check_conformance", "Planner.plan", "Planner.__init__"])
async def test_failing_evaluation_is_a_rejection_that_says_so(
    part: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise KeyError("secret reason")

    monkeypatch.setattr(f"{Negotiator.__module__}.{part}", fail)
    async with negotiating() as bench:
        refused = await bench.send("PROPOSE", "/", definition())
        assert (refused.status, refused.json["reason"]) == (463, "composition-impossible")
        assert "failed" in refused.json["explanation"]
        assert "secret" not in str(refused.json)
        (logged,) = [record for record in caplog.records if record.levelname == "ERROR"]
        assert refused.json["proposal_id"] in logged.getMessage()
        polled = await bench.send("QUERY", f"/proposals/{refused.json['proposal_id']}")
        assert (polled.status, polled.json["explanation"]) == (463, refused.json["explanation"])


async def test_proposals_that_are_too_large_or_have_too_many_fields_are_refused(bench: StatefulBench) -> None:
    assert (await bench.send("PROPOSE", "/", lodgings(description="x" * 70_000))).status == 413
    schema = {"type": "object", "properties": {f"f{n}": {} for n in range(5_000)}}
    assert (await bench.send("PROPOSE", "/", lodgings(output_schema=schema))).status == 400


@pytest.mark.requirement("API-8.7-5")
async def test_plan_deeper_than_the_policy_allows_is_refused() -> None:
    steps = LODGINGS.steps * 3
    async with negotiating(recipes=(replace(LODGINGS, steps=steps),), policies={"max_synthesis_depth": 2}) as bench:
        refused = await bench.send("PROPOSE", "/", lodgings())
        assert (refused.status, refused.json["reason"]) == (463, "composition-impossible")
        assert "3 steps" in refused.json["explanation"]


@pytest.mark.requirement("API-8.7-4")
async def test_server_that_does_not_negotiate_says_so() -> None:
    async with negotiating(policies={"synthesis_enabled": False}) as bench:
        assert (await bench.send("PROPOSE", "/", lodgings())).gives("reason") == (463, "synthesis-disabled")
        assert (await bench.send("QUERY", "/proposals/prop-1")).status in (404, 405)


async def test_rejection_reveals_nothing_to_callers_that_may_not_discover() -> None:
    async with negotiating(policies={"anonymous_discovery": False}) as bench:
        hidden = definition(method="CANCEL", path="/stays")
        refused = await bench.send("PROPOSE", "/", hidden, agent=None)
        assert refused.status == 463
        assert not {"similar_endpoints", "counter_proposal", "misses"} & refused.json.keys()


async def test_session_that_only_the_body_names_is_used(bench: StatefulBench) -> None:
    assert (await bench.send("PROPOSE", "/", {"proposal": lodgings(), "session_id": SESSION})).status == 263
    assert (await bench.send("FIND", "/lodgings", {"town": "x"})).status == 404
    assert (await bench.send("FIND", "/lodgings", {"town": "x"}, session_id=SESSION)).status == 200
    taken = await bench.send("PROPOSE", "/", {"proposal": lodgings(), "session_id": SESSION}, agent=OTHER)
    assert (taken.status, taken.error["code"]) == (403, "session-of-another")


async def test_record_of_a_call_names_its_synthesis() -> None:
    async with negotiating(audit=True) as bench:
        approved = await bench.send("PROPOSE", "/", lodgings())
        assert approved.header("Audit-ID")
        called = await bench.send("FIND", "/lodgings", {"town": "Rome"})
        shown = await bench.send("INSPECT", "/", {"target": "audit", "audit_id": called.header("Audit-ID")})
        record = shown.json["result"]["record"]
        assert (record["synthesis_id"], record["path"]) == (approved.json["synthesis_id"], "/lodgings")
