"""PLAN returns calls that the caller may make, with what they cost and need, and executes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.service import make_endpoint
from tests.stateful import keeping

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.limits import read_cost
from bespeak.extensions.workflows.methods_plan import KIND
from bespeak.state.store.commands.records import ListRecords

pytestmark = pytest.mark.anyio

TEXT = {"type": "string"}
CALLED: list[str] = []


def endpoint(method: str, path: str, inputs: tuple[str, ...], outputs: tuple[str, ...], **fields: Any) -> Endpoint:
    def call(given: dict[str, Any]) -> dict[str, Any]:
        CALLED.append(path)
        return {name: f"{name} of {given.get('id', '')}" for name in outputs}

    output = {"type": "object", "properties": dict.fromkeys(outputs, TEXT), "required": list(outputs)}
    made = make_endpoint(
        method, path, call, properties=dict.fromkeys(inputs, TEXT), required=inputs, output=output, **fields
    )
    cost, _ = read_cost({"USD": "0.25"})
    return replace(made, description=f"{method.title()} {path.split('/')[1]}.", cost=cost)


BOOKING = endpoint("FETCH", "/bookings/{id}", ("id",), ("id", "guest_id"))
GUEST = endpoint("FETCH", "/guests/{id}", ("id",), ("id", "name"), scopes=("guests:read",))
GOAL = {"goal": {"path": "/bookings/{id}/guest", "output": ["name"]}, "constraints": {"given": {"id": "b-1"}}}


@pytest.mark.requirement("CORE-4.5-2")
async def test_a_plan_names_calls_that_can_be_executed() -> None:
    async with keeping(BOOKING, GUEST) as bench:
        CALLED.clear()
        reply = await bench.send("PLAN", "/", GOAL, authority_scope="guests:read")
        result = reply.json["result"]
        assert [step["path"] for step in result["ordered_steps"]] == ["/bookings/{id}", "/guests/{id}"]
        assert result["ordered_steps"][1] | {} == {
            "step": 2,
            "name": "step_2",
            "method": "FETCH",
            "path": "/guests/{id}",
            "parameters": {"id": {"$from": "step_1.guest_id"}},
            "purpose": "Fetch guests.",
            "impact": "informational",
            "required_scopes": ["guests:read"],
            "estimated_cost": {"calls": 1, "USD": 0.25},
            "confidence": 1.0,
        }
        assert (result["estimated_cost"], result["needs"]) == ({"calls": 2, "USD": 0.5}, [])
        assert {"confidence", "assumptions"} <= result.keys()
        assert CALLED == []
        again = await bench.send("PLAN", "/", GOAL, authority_scope="guests:read")
        assert again.json["result"] == result
        assert len(await bench.store.read(ListRecords(KIND))) == 1


async def test_endpoints_beyond_the_scopes_of_the_caller_are_not_planned_with() -> None:
    async with keeping(BOOKING, GUEST) as bench:
        refused = await bench.send("PLAN", "/", GOAL)
        assert (refused.status, refused.error["code"]) == (422, "no-plan")
        assert "/guests" not in str(refused.json)


@pytest.mark.parametrize(
    "limits",
    [{"max_steps": 1}, {"max_cost": {"USD": "0.30"}}],
)
async def test_constraints_are_kept(limits: dict[str, Any]) -> None:
    async with keeping(BOOKING, GUEST) as bench:
        body = {**GOAL, "constraints": {**GOAL["constraints"], **limits}}
        refused = await bench.send("PLAN", "/", body, authority_scope="guests:read")
        assert (refused.status, refused.error["code"]) == (422, "no-plan")


async def test_only_available_methods_are_used() -> None:
    async with keeping(BOOKING, GUEST) as bench:
        body = {**GOAL, "available_methods": ["LIST"]}
        assert (await bench.send("PLAN", "/", body, authority_scope="guests:read")).status == 422


async def test_a_server_without_endpoints_has_no_plan() -> None:
    async with keeping() as bench:
        assert (await bench.send("PLAN", "/", {"goal": "rest"})).error["code"] == "no-plan"
