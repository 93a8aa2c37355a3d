"""Compositions with a store: keys, confirmations, records, and what is undone."""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64decode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.compositions import TEXT, captured, compose, given, item, recipe, step
from tests.service import make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import Refusal
from bespeak.contract.limits import read_cost
from bespeak.contract.policy import Policies
from bespeak.contract.recipe import Compensation, Retry, constant
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.protocol.exchange.messages import Context
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.exchange import REPLAYED
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.store.commands.audit import ScanAudit
from bespeak.state.store.commands.cases import DecideCase
from bespeak.state.store.settings import open_store

pytestmark = pytest.mark.anyio

CONFIRMING = Policies(confirm_irreversible=True)


class Desk:
    """Endpoints that remember what they did."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.trouble: dict[str, Callable[[], Any]] = {}
        self.price = 10

    def do(self, method: str, path: str, impact: str = "reversible", **fields: Any) -> Endpoint:
        name = f"{method} {path}"

        def handle(input: dict[str, Any], context: Context) -> dict[str, Any]:  # noqa: A002
            trouble = self.trouble.get(name)
            if trouble is not None and (result := trouble()) is not None:
                return result
            self.done.append(f"{name} {input['id']}" if "id" in input else name)
            return {
                "id": f"{path[1:]}-{len(self.done)}",
                "price": self.price,
                "key": context.request.headers.get("idempotency-key"),
            }

        endpoint = make_endpoint(
            method, path, handle, properties={"id": TEXT, "price": {}}, impact=impact, errors=("no",), **fields
        )
        return replace(endpoint, semantic=replace(endpoint.semantic, is_idempotent=impact == "informational"))

    def serve(self, *calls: str | Endpoint, made: Endpoint, **fields: Any) -> Any:
        """Serve a composition and what it calls, each as `METHOD /path impact`."""
        endpoints = (self.do(*call.split()) if isinstance(call, str) else call for call in calls)
        return keeping(*endpoints, made, **fields)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def refuse() -> Any:
    raise Refusal("no", "No.")


def composed(*steps: Any, impact: str = "reversible", properties: Any = None, **fields: Any) -> dict[str, Any]:
    made = compose("BOOK", "/trip", "r", impact=impact, properties=properties)
    made = replace(made, semantic=replace(made.semantic, is_idempotent=False))
    return {"made": made, "recipes": (recipe(*steps, **fields),)}


async def book(bench: StatefulBench, body: Any = None, **headers: str) -> Any:
    assert bench.bench.findings == []
    return await bench.send("BOOK", "/trip", body or {}, **headers)


def undoing(path: str) -> Compensation:
    return Compensation(method="CANCEL", path=path, input={"id": captured(f"{path[1:]}.id")})


LATER = Refused(503, "busy", "Busy.", headers=(("Retry-After", "3"),))


@pytest.mark.parametrize("shared", [False, True])
async def test_a_repeated_call_continues_after_what_was_done(desk: Desk, shared: bool, tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store.db"), role="shared" if shared else "sole")
    read, flight, hotel = ("FETCH /tariff informational", "BOOK /flight", "BOOK /hotel")
    desk.trouble["BOOK /hotel"] = lambda: LATER
    steps = (
        step("FETCH /tariff", "tariff"),
        step("BOOK /flight", "flight", {"price": captured("tariff.price")}),
        step("BOOK /hotel", take={"id": captured("flight.id"), "price": captured("tariff.price")}),
    )
    async with desk.serve(read, flight, hotel, **composed(*steps), store=store) as bench:
        first = await book(bench, idempotency_key="k")
        assert (first.status, first.header("Retry-After"), first.error["details"]["effects"]) == (422, "3", [2])
        desk.trouble.clear()
        desk.price = 99
        second = await book(bench, idempotency_key="k")
        assert (second.status, second.json["id"]) == (200, "hotel-3")
        assert desk.done == ["FETCH /tariff", "BOOK /flight", "BOOK /hotel flight-2"]
        third = await book(bench, idempotency_key="k")
        assert (third.json, third.header(REPLAYED[0])) == (second.json, "true")
        assert len(desk.done) == 3
    await store.close()


async def test_without_a_key_a_call_that_has_changed_something_is_not_to_be_repeated(desk: Desk) -> None:
    flight, hotel = "BOOK /flight", "BOOK /hotel"
    desk.trouble["BOOK /hotel"] = lambda: LATER
    async with desk.serve(flight, hotel, **composed(step("BOOK /flight"), step("BOOK /hotel"))) as bench:
        reply = await book(bench)
        assert (reply.status, reply.header("Retry-After"), reply.error["details"]["effects"]) == (422, None, [1])


async def test_each_step_sees_a_key_of_its_own_that_no_caller_can_send(desk: Desk) -> None:
    steps = (step("BOOK /flight", "a"), step("BOOK /hotel", "b"))
    output = {"keys": captured("", select={"a": item("a.key"), "b": item("b.key")})}
    async with desk.serve("BOOK /flight", "BOOK /hotel", **composed(*steps, output=output)) as bench:
        keys = (await book(bench, idempotency_key="k")).json["keys"]
        assert len({"k", keys["a"], keys["b"]}) == 3
        assert " " not in keys["a"]
    async with desk.serve("BOOK /flight", **composed(step("BOOK /flight"))) as bench:
        reply = await bench.send("BOOK", "/flight", {}, idempotency_key="step 00")
        assert (reply.status, reply.error["code"]) == (400, "invalid-idempotency-key")


async def test_two_identical_calls_at_once_do_everything_once(desk: Desk) -> None:
    gate = asyncio.Event()

    async def wait(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
        await gate.wait()
        desk.done.append("hotel")
        return {}

    hotel = replace(make_endpoint("BOOK", "/hotel", wait, impact="reversible"))
    async with desk.serve("BOOK /flight", hotel, **composed(step("BOOK /flight"), step("BOOK /hotel"))) as bench:
        first = asyncio.create_task(book(bench, idempotency_key="k"))
        while not desk.done:
            await asyncio.sleep(0)
        assert (await book(bench, idempotency_key="k")).refusal == (409, "idempotency-key-in-progress")
        gate.set()
        assert (await first).status == 200
        assert desk.done == ["BOOK /flight", "hotel"]


async def decide(bench: StatefulBench, case_id: str, status: str = "accepted") -> None:
    await bench.store.do(DecideCase(case_id, status, "operator:desk", f"att-{case_id}", kinds=("confirmation",)))


async def test_a_step_that_waits_makes_the_whole_wait_and_continues_after_it(desk: Desk) -> None:
    hold, pay, ship = ("BOOK /hold", "BOOK /payment irreversible", "BOOK /parcel irreversible")
    steps = (
        step("BOOK /hold", "hold"),
        step("BOOK /payment", "payment", {"id": captured("hold.id")}),
        step("BOOK /parcel", take={"id": captured("payment.id")}),
    )
    async with desk.serve(hold, pay, ship, **composed(*steps, impact="irreversible"), policies=CONFIRMING) as bench:
        keyless = await book(bench)
        assert (keyless.status, keyless.error["code"], desk.done) == (400, "idempotency-key-required", [])
        waiting = await book(bench, idempotency_key="k")
        assert (waiting.status, waiting.error["code"], waiting.error["step"]) == (262, "confirmation-required", 2)
        first = waiting.error["confirmation_id"]
        assert (await book(bench, idempotency_key="k")).error["confirmation_id"] == first
        await decide(bench, first)
        waiting = await book(bench, idempotency_key="k", confirmation_id=first)
        assert (waiting.status, waiting.error["step"]) == (262, 3)
        second = waiting.error["confirmation_id"]
        assert second != first
        await decide(bench, second)
        done = await book(bench, idempotency_key="k", confirmation_id=second)
        assert (done.status, desk.done) == (200, ["BOOK /hold", "BOOK /payment hold-1", "BOOK /parcel payment-2"])


async def test_a_rejected_confirmation_undoes_what_was_done(desk: Desk) -> None:
    hold, free = "BOOK /hold", "CANCEL /hold"
    pay = "BOOK /payment irreversible"
    undo = undoing("/hold")
    steps = (step("BOOK /hold", "hold", compensate=undo), step("BOOK /payment"))
    async with desk.serve(hold, free, pay, **composed(*steps, impact="irreversible"), policies=CONFIRMING) as bench:
        case_id = (await book(bench, idempotency_key="k")).error["confirmation_id"]
        await decide(bench, case_id, "rejected")
        reply = await book(bench, idempotency_key="k", confirmation_id=case_id)
        details = reply.error["details"]
        assert (reply.status, details["status"], details["code"]) == (422, 403, "confirmation-rejected")
        assert details["compensated"] == [{"step": 1, "method": "CANCEL", "path": "/hold", "status": 200}]
        assert "effects" not in details
        assert desk.done == ["BOOK /hold", "CANCEL /hold hold-1"]
        again = await book(bench, idempotency_key="k", confirmation_id=case_id)
        assert (again.json, again.header(REPLAYED[0])) == (reply.json, "true")


async def test_one_confirmation_of_the_composition_covers_its_steps(desk: Desk) -> None:
    fields = composed(step("BOOK /payment"), impact="irreversible")
    fields["made"] = replace(fields["made"], confirm=True)
    async with desk.serve("BOOK /payment irreversible", **fields, policies=CONFIRMING) as bench:
        case_id = (await book(bench)).error["confirmation_id"]
        await decide(bench, case_id)
        assert (await book(bench, confirmation_id=case_id)).status == 200
        assert desk.done == ["BOOK /payment"]


async def test_steps_are_undone_in_reverse_order_and_failures_are_told(desk: Desk) -> None:
    names = ("/flight", "/hotel")
    endpoints = [desk.do(method, path) for path in names for method in ("BOOK", "CANCEL")]
    endpoints[3] = replace(endpoints[3], internal=True)
    desk.trouble |= {"BOOK /car": refuse, "CANCEL /flight": refuse}
    steps = [
        step(
            f"BOOK {path}",
            path[1:],
            compensate=Compensation(method="CANCEL", path=path, input={"id": captured(f"{path[1:]}.id")}),
        )
        for path in names
    ]
    async with desk.serve(*endpoints, "BOOK /car", **composed(*steps, step("BOOK /car"))) as bench:
        details = (await book(bench)).error["details"]
        assert details["compensated"] == [
            {"step": 2, "status": 200},
            {"step": 1, "method": "CANCEL", "path": "/flight", "status": 422, "code": "no"},
        ]
        assert details["effects"] == [1]
        assert desk.done == ["BOOK /flight", "BOOK /hotel", "CANCEL /hotel hotel-2"]


async def test_elements_of_a_list_are_undone_each(desk: Desk) -> None:
    undo = Compensation(method="CANCEL", path="/seat", input={"id": captured("seats.id"), "price": item()})
    each = step("BOOK /seat", "seats", {"id": item()}, for_each=constant(["x", "y"]), compensate=undo)
    desk.trouble["BOOK /car"] = refuse
    async with desk.serve("BOOK /seat", "CANCEL /seat", "BOOK /car", **composed(each, step("BOOK /car"))) as bench:
        details = (await book(bench, idempotency_key="k")).error["details"]
        assert [one["status"] for one in details["compensated"]] == [200, 200]
        assert desk.done == ["BOOK /seat x", "BOOK /seat y", "CANCEL /seat seat-2", "CANCEL /seat seat-1"]


async def test_what_was_begun_to_be_undone_is_undone_even_if_the_failed_step_would_succeed_later(desk: Desk) -> None:
    undo = undoing("/flight")
    steps = (step("BOOK /flight", "flight", compensate=undo), step("BOOK /hotel"))
    desk.trouble["BOOK /hotel"] = lambda: 1 / 0
    async with desk.serve("BOOK /flight", "CANCEL /flight", "BOOK /hotel", **composed(*steps)) as bench:
        task = asyncio.create_task(book(bench, idempotency_key="k"))
        desk.trouble["CANCEL /flight"] = lambda: task.cancel() and None
        with pytest.raises(asyncio.CancelledError):
            await task
        desk.trouble.clear()
        reply = await book(bench, idempotency_key="k")
        assert (reply.status, reply.error["details"]["step"], reply.error["details"]["status"]) == (422, 2, 500)
        assert "BOOK /hotel" not in desk.done


async def test_the_time_of_the_whole_is_bounded(desk: Desk) -> None:
    async def wait(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
        await asyncio.Event().wait()
        return {}

    undo = undoing("/flight")
    slow = make_endpoint("BOOK", "/slow", wait, impact="reversible")
    slow = replace(slow, semantic=replace(slow.semantic, is_idempotent=False))
    steps = (step("BOOK /flight", "flight", compensate=undo), step("BOOK /slow"))
    async with desk.serve("BOOK /flight", "CANCEL /flight", slow, **composed(*steps, timeout_seconds=0.5)) as bench:
        reply = await book(bench, idempotency_key="k")
        details = reply.error["details"]
        assert (reply.status, details["step"], details["code"]) == (422, 2, "composition-timeout")
        assert desk.done == ["BOOK /flight", "CANCEL /flight flight-1"]


def payload_of(jws: str) -> dict[str, Any]:
    part = jws.split(".")[1]
    found: dict[str, Any] = msgspec.json.decode(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


async def test_records_of_steps_name_the_composition(desk: Desk) -> None:
    document = ServerDocument(audit=AuditSettings(records="all"))
    steps = (step("FETCH /tariff"), step("BOOK /seat", take={"id": item()}, for_each=constant(["x"])))
    async with desk.serve("FETCH /tariff informational", "BOOK /seat", **composed(*steps), document=document) as bench:
        reply = await book(bench)
        records = [payload_of(row[-1]) for row in await bench.store.read(ScanAudit())]
        named = [(one["path"], one.get("step"), one.get("parent_response_id")) for one in records]
        parent = reply.header("Response-ID")
        assert named == [("/tariff", "1", parent), ("/seat", "2/0", parent), ("/trip", None, None)]
        assert records[-1]["response_id"] == parent


async def test_the_budget_counts_all_steps_together(desk: Desk) -> None:
    cost, _ = read_cost({"USD": "2"})
    paid = replace(desk.do("BOOK", "/seat"), cost=cost)
    async with desk.serve(paid, **composed(step("BOOK /seat"), step("BOOK /seat"))) as bench:
        assert (await book(bench, budget_limit="USD=4")).status == 200
        reply = await book(bench, budget_limit="USD=3")
        assert (reply.error["details"]["step"], reply.error["details"]["code"]) == (2, "budget-exceeded")
        assert len(desk.done) == 3


async def test_a_composition_inside_another_keeps_its_own_journal(desk: Desk) -> None:
    desk.trouble["BOOK /hotel"] = lambda: LATER
    inner = compose("BOOK", "/inner", "inner", impact="reversible")
    inner = replace(inner, semantic=replace(inner.semantic, is_idempotent=False))
    fields = composed(step("BOOK /inner"), step("BOOK /inner"))
    fields["recipes"] += (recipe(step("BOOK /flight"), step("BOOK /hotel"), name="inner"),)
    async with desk.serve(inner, "BOOK /flight", "BOOK /hotel", **fields) as bench:
        assert (await book(bench, idempotency_key="k")).header("Retry-After") == "3"
        desk.trouble.clear()
        assert (await book(bench, idempotency_key="k")).status == 200
        assert desk.done == ["BOOK /flight", "BOOK /hotel", "BOOK /flight", "BOOK /hotel"]


async def test_given_values_reach_the_steps_of_a_call_with_a_key(desk: Desk) -> None:
    fields = composed(step("BOOK /flight", take={"id": given("id")}), properties={"id": TEXT})
    async with desk.serve("BOOK /flight", **fields) as bench:
        await book(bench, {"id": "LH1"}, idempotency_key="k")
        assert desk.done == ["BOOK /flight LH1"]


async def test_a_cancelled_call_continues_under_its_key(desk: Desk) -> None:
    waiting = asyncio.Event()

    async def wait(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
        if not waiting.is_set():
            waiting.set()
            await asyncio.Event().wait()
        desk.done.append("hotel")
        return {}

    hotel = make_endpoint("BOOK", "/hotel", wait, impact="reversible")
    steps = (step("BOOK /flight", "flight", compensate=undoing("/flight")), step("BOOK /hotel"))
    async with desk.serve("BOOK /flight", "CANCEL /flight", hotel, **composed(*steps)) as bench:
        task = asyncio.create_task(book(bench, idempotency_key="k"))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert desk.done == ["BOOK /flight"]
        assert (await book(bench, idempotency_key="k")).status == 200
        assert desk.done == ["BOOK /flight", "hotel"]


async def test_steps_of_a_group_that_fail_undo_what_the_others_did(desk: Desk) -> None:
    desk.trouble["BOOK /hotel"] = refuse
    steps = (step("BOOK /flight", "flight", compensate=undoing("/flight"), group="g"), step("BOOK /hotel", group="g"))
    async with desk.serve("BOOK /flight", "CANCEL /flight", "BOOK /hotel", **composed(*steps)) as bench:
        details = (await book(bench, idempotency_key="k")).error["details"]
        assert (details["step"], details["compensated"][0]["status"]) == (2, 200)
        assert desk.done == ["BOOK /flight", "CANCEL /flight flight-1"]


@pytest.mark.parametrize("key", [{}, {"idempotency_key": "k"}])
async def test_step_is_tried_again_as_often_as_declared_if_its_failure_may_pass(desk: Desk, key: Any) -> None:
    tried = []

    def busy(times: int, answer: Any) -> Callable[[], Any]:
        def fail() -> Any:
            tried.append(1)
            return answer() if len(tried) <= times else None

        return fail

    steps = (
        step("BOOK /flight", "flight", compensate=undoing("/flight")),
        step("BOOK /hotel", retry=Retry(attempts=3, delay=0.0)),
    )
    busy_now = Refused(503, "busy", "Busy.", headers=(("Retry-After", "0"),))
    for times, answer, attempts, status in (
        (2, lambda: busy_now, 3, 200),
        (9, lambda: busy_now, 3, 422),
        (9, refuse, 1, 422),  # says that it will fail again
        (9, lambda: replace_wait(busy_now, "40"), 1, 422),  # longer than the recipe may take
    ):
        tried.clear()
        desk.done.clear()
        desk.trouble["BOOK /hotel"] = busy(times, answer)
        async with desk.serve("BOOK /flight", "CANCEL /flight", "BOOK /hotel", **composed(*steps)) as bench:
            reply = await book(bench, **key)
        assert (len(tried), reply.status) == (attempts, status)
        assert desk.done.count("BOOK /hotel") == (1 if status == 200 else 0)


def replace_wait(refused: Refused, seconds: str) -> Refused:
    return msgspec.structs.replace(refused, headers=(("Retry-After", seconds),))


@pytest.mark.parametrize("key", [{}, {"idempotency_key": "k"}])
async def test_attempt_that_takes_too_long_is_ended_and_tried_again(desk: Desk, key: Any) -> None:
    tried = []

    async def wait(input: dict[str, Any], context: Context) -> dict[str, Any]:  # noqa: A002
        tried.append(1)
        if len(tried) < 3:
            await asyncio.Event().wait()
        return {"id": "h"}

    slow = make_endpoint("BOOK", "/hotel", wait, impact="reversible")
    for attempts in (2, 3):
        tried.clear()
        retry = Retry(attempts=attempts, delay=0.0)
        steps = (
            step("BOOK /flight", "flight", compensate=undoing("/flight")),
            step("BOOK /hotel", timeout=0.25, retry=retry),
        )
        desk.done.clear()
        async with desk.serve("BOOK /flight", "CANCEL /flight", slow, **composed(*steps)) as bench:
            reply = await book(bench, **key)
        assert len(tried) == attempts
        if attempts == 3:
            assert (reply.status, reply.json) == (200, {"id": "h"})
        else:
            details = reply.error["details"]
            assert (reply.status, details["step"], details["code"], details["status"]) == (422, 2, "step-timeout", 408)
