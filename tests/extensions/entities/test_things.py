"""Things of the service: CANCEL, CHECK and MONITOR know them through its functions."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest
from tests.cases import rows
from tests.messaging import BOB
from tests.service import AGENT
from tests.state.store.conftest import place
from tests.stateful import StatefulBench, audited_backend, keeping
from tests.things import contracts, joining

from bespeak import App, Context, ContractError, Refusal, Unknown
from bespeak.contract.participant import Participant
from bespeak.state.store.commands.records import FindRecord
from bespeak.state.store.settings import open_store

anyio_backend = audited_backend
pytestmark = pytest.mark.anyio

__all__ = ["place"]


class Desk:
    """A service with bookings and tables."""

    def __init__(self, owner: str = AGENT) -> None:
        self.bookings = {"77": "booked", "78": "past", "80": "booked"}
        self.tables = {"t-1": "free"}
        self.owner = owner
        self.asked: list[tuple[str, ...]] = []

    def declare(self, app: App) -> None:
        """Declare what the desk knows."""

        @app.cancels("booking")
        async def cancel_booking(booking_id: str, context: Context, reason: str | None = None) -> dict[str, Any]:
            """Cancel a booking.

            Errors:
                too_late: The guest has arrived.
            """
            self.asked.append(("booking", booking_id, reason or ""))
            if booking_id not in self.bookings or context.agent_id != self.owner:
                raise Unknown
            if self.bookings[booking_id] == "cancelled":
                raise Refusal("already-cancelled", "It is cancelled.")
            if self.bookings[booking_id] == "past":
                raise Refusal("too_late", "The guest has arrived.", since="noon")
            self.bookings[booking_id] = "cancelled"
            context.notify(BOB, {"freed": booking_id})
            return {"room": 12, "refund": {"value": "5", "currency": "EUR"}}

        @app.cancels("table")
        def cancel_table(table: str, refund_policy: str = "none") -> None:
            """Cancel a table."""
            self.asked.append(("table", table, refund_policy))
            if table == "t-broken":
                raise RuntimeError("the desk burns")
            if table not in self.tables:
                raise Unknown(f"There is no table {table}.")
            self.tables[table] = "cancelled"

        @app.checks("booking")
        async def check_booking(booking_id: str, context: Context, depth: str = "shallow") -> dict[str, Any]:
            """Check a booking."""
            if booking_id not in self.bookings or context.agent_id != self.owner:
                raise Unknown
            return {"state": self.bookings[booking_id], "depth": depth}

        @app.checks("table", scopes=["tables:read"])
        def check_table(table: str) -> dict[str, Any]:
            """Check a table."""
            if table not in self.tables:
                raise Unknown
            return {"seats": 4}

    @property
    def participants(self) -> tuple[Participant, ...]:
        """What the service declares."""
        return joining(self.declare)


async def cancel(bench: StatefulBench, target: str, agent: str = AGENT, key: str = "", **fields: Any) -> Any:
    headers = {"idempotency_key": key} if key else {}
    return await bench.send("CANCEL", "/", {"target_id": target, **fields}, agent=agent, **headers)


async def letters(bench: StatefulBench, agent: str = BOB) -> list[Any]:
    reply = await bench.send("QUERY", "/messages", {}, agent=agent)
    return [one["content"] for one in reply.json["result"]["messages"]]


@pytest.mark.requirement("METHODS-5.5-2", "METHODS-5.5-3")
async def test_cancel_gives_an_unknown_id_to_the_service_and_tells_what_it_did() -> None:
    desk = Desk()
    async with keeping(participants=desk.participants, methods=("PUBLISH",)) as bench:
        done = (await cancel(bench, "77", reason="rain")).json["result"]
        assert (done["target_id"], done["kind"], done["status"]) == ("77", "booking", "cancelled")
        assert (done["details"]["room"], done["refund"]) == (12, {"value": "5", "currency": "EUR"})
        assert (desk.bookings["77"], desk.asked) == ("cancelled", [("booking", "77", "rain")])
        assert await letters(bench) == [{"freed": "77"}]


async def test_functions_are_asked_in_the_order_of_declaration_and_a_name_picks_one() -> None:
    desk = Desk()
    async with keeping(participants=desk.participants, methods=("PUBLISH",)) as bench:
        assert (await cancel(bench, "t-1")).json["result"]["kind"] == "table"
        assert [name for name, *_ in desk.asked] == ["booking", "table"]
        desk.asked.clear()
        assert (await cancel(bench, "table:t-1")).json["result"]["target_id"] == "table:t-1"
        assert desk.asked == [("table", "t-1", "none")]
        assert (await cancel(bench, "table:77")).refusal == (404, "target-not-found")
        assert (await cancel(bench, "other:77")).refusal == (404, "target-not-found")
        assert desk.asked[-1] == ("table", "other:77", "none")


@pytest.mark.requirement("METHODS-5.5-4", "METHODS-5.5-5")
@rows(
    "target, fields, answer",
    ("nothing", {}, (404, "target-not-found")),
    ("78", {}, (422, "too_late")),
    ("t-broken", {}, (500, "server-error")),
    ("77", {"reason": {"code": 1}}, (422, "input-validation-failed")),
    ("booking:77", {"refund_policy": "full"}, (422, "refund-impossible")),
)
async def test_what_the_service_refuses_cancel_refuses(target: str, fields: Any, answer: tuple[int, str]) -> None:
    desk = Desk()
    async with keeping(participants=desk.participants, methods=("PUBLISH",)) as bench:
        refused = await cancel(bench, target, **fields)
        assert refused.refusal == answer
        assert "/cancels/" not in str({**refused.error, "message": ""})
        assert (desk.bookings["77"], await letters(bench)) == ("booked", [])


@pytest.mark.requirement("METHODS-5.5-4")
async def test_a_thing_is_cancelled_once_and_the_same_key_gets_the_same_answer() -> None:
    desk = Desk()
    async with keeping(participants=desk.participants, methods=("PUBLISH",)) as bench:
        done, again = await cancel(bench, "77", key="k-1"), await cancel(bench, "77", key="k-1")
        assert (done.json, len(desk.asked), len(await letters(bench))) == (again.json, 1, 1)
        assert (await cancel(bench, "77", key="k-2")).refusal == (409, "already-cancelled")


async def test_a_function_that_takes_a_refund_policy_may_be_asked_for_a_refund() -> None:
    desk = Desk()
    async with keeping(participants=desk.participants, methods=("PUBLISH",)) as bench:
        assert (await cancel(bench, "t-1", refund_policy="full")).status == 200
        assert desk.asked == [("table", "t-1", "full")]


async def test_things_of_another_agent_are_not_found_and_records_come_first() -> None:
    desk = Desk()
    participants = (*desk.participants, *joining(contracts))
    async with keeping(participants=participants, methods=("PUBLISH",)) as bench:
        assert (await cancel(bench, "77", agent=BOB)).refusal == (404, "target-not-found")
        assert (await bench.send("CHECK", "/", {"target": "77"}, agent=BOB)).refusal == (404, "target-not-found")
        body = {"entity_type": "contract", "data": {"title": "Lease"}}
        entity_id = (await bench.send("REGISTER", "/", body)).json["result"]["entity_id"]
        desk.asked.clear()
        assert (await cancel(bench, entity_id)).json["result"]["kind"] == "entity"
        assert desk.asked == []


@pytest.mark.requirement("METHODS-8.9-3", "METHODS-8.9-4")
async def test_check_tells_the_state_and_the_details_of_a_thing() -> None:
    async with keeping(participants=Desk().participants, methods=("PUBLISH",)) as bench:
        found = (await bench.send("CHECK", "/", {"target": "booking:77", "depth": "deep"})).json["result"]
        assert (found["target"], found["status"]) == ("booking:77", "booked")
        assert found["components"] == [{"name": "booking", "status": "booked"}]
        assert found["details"] == {"state": "booked", "depth": "deep"}
        assert (await bench.send("CHECK", "/", {"target": "nothing"})).refusal == (404, "target-not-found")


async def test_a_function_with_scopes_is_passed_over_unless_it_is_picked() -> None:
    async with keeping(participants=Desk().participants, methods=("PUBLISH",)) as bench:
        asked = {"target": "t-1"}
        assert (await bench.send("CHECK", "/", asked)).status == 404
        assert (await bench.send("CHECK", "/", {"target": "table:t-1"})).refusal == (455, "scope-violation")
        found = await bench.send("CHECK", "/", asked, authority_scope="tables:read")
        assert (found.json["result"]["status"], found.json["result"]["details"]) == ("ok", {"seats": 4})


async def test_monitor_observes_the_state_of_a_thing_until_it_is_gone() -> None:
    desk = Desk()
    async with keeping(participants=desk.participants, methods=("MONITOR",)) as bench:
        body = {"target": "booking:77", "events": ["state_changed"], "callback": "inbox", "interval": 5}
        made = (await bench.send("MONITOR", "/", body)).json["result"]
        assert made["target"] == "booking:77"
        assert (await bench.send("MONITOR", "/", {**body, "target": "nothing"})).refusal == (404, "target-not-found")
        monitors = bench.bench.server.part("monitors")
        for state, told in (("arrived", "arrived"), (None, "gone")):
            desk.bookings.pop("77") if state is None else desk.bookings.update({"77": state})
            await look(bench, monitors, made["subscription_id"])
            assert (await letters(bench, AGENT))[-1]["value"] == told


async def look(bench: StatefulBench, monitors: Any, monitor_id: str) -> None:
    async with asyncio.timeout(20):
        await monitors._look(await bench.store.read(FindRecord(("monitor",), monitor_id)))


async def test_cancel_and_its_messages_are_one_transaction_on_every_database(place: str) -> None:
    desk = Desk()
    async with keeping(participants=desk.participants, methods=("PUBLISH",), store=open_store(place)) as bench:
        done, again = await cancel(bench, "80", key="k"), await cancel(bench, "80", key="k")
        assert (done.status, done.json, await letters(bench)) == (200, again.json, [{"freed": "80"}])
        assert (await bench.send("CHECK", "/", {"target": "80"})).json["result"]["status"] == "cancelled"


async def test_the_methods_publish_the_names_and_errors_of_the_service() -> None:
    async with keeping(participants=Desk().participants) as bench:
        cancels, checks = (bench.bench.routes.steps[method, "/"].endpoint for method in ("CANCEL", "CHECK"))
        assert cancels.description.endswith("This service has: booking, table.")
        assert checks.description.endswith("This service has: booking.")
        assert "too_late" in [error.name for error in cancels.errors]
        assert cancels.semantic.impact == "irreversible"


async def test_an_id_of_another_form_is_unknown() -> None:
    def declare(app: App) -> None:
        @app.checks("order")
        def check_order(order: UUID) -> dict[str, str]:
            """Check an order."""
            return {"status": "sent"}

    async with keeping(participants=joining(declare)) as bench:
        assert (await bench.send("CHECK", "/", {"target": "77"})).status == 404
        assert (await bench.send("CHECK", "/", {"target": str(UUID(int=1))})).json["result"]["status"] == "sent"


@pytest.mark.parametrize("value", [None, [1], "x", {"x": float("nan")}])
async def test_what_is_not_an_object_of_json_is_a_fault_and_nothing_is_sent(value: Any) -> None:
    def declare(app: App) -> None:
        @app.cancels("booking")
        def cancel_booking(booking: str, context: Context) -> dict[str, Any]:
            """Cancel a booking."""
            context.notify(BOB, {"freed": booking})
            return value  # type: ignore[no-any-return]

    async with keeping(participants=joining(declare)) as bench:
        assert (await cancel(bench, "77")).refusal == (500, "output-validation-failed")
        assert await letters(bench) == []


async def test_a_step_of_a_chain_cancels_a_thing_once() -> None:
    desk = Desk()
    async with keeping(participants=desk.participants, methods=("CHAIN",)) as bench:
        step = {"method": "CANCEL", "path": "/", "parameters": {"target_id": "77"}}
        done = (await bench.send("CHAIN", "/", {"steps": [step]}, idempotency_key="k")).json["result"]
        assert (done["status"], desk.bookings["77"]) == ("completed", "cancelled")
        await bench.send("CHAIN", "/", {"steps": [step]}, idempotency_key="k")
        assert (len(desk.asked), await letters(bench)) == (1, [{"freed": "77"}])


def no_id() -> None: ...
def number(booking: int) -> None: ...
def more(booking: str, colour: str = "red") -> None: ...
def several(booking: str) -> list[dict[str, str]]:
    return []


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        (no_id, "first parameter must be the id"),
        (number, "first parameter must be the id"),
        (several, "must return one object"),
        (more, "CANCEL has no parameter 'colour' to give to it; it has reason, notify_parties"),
    ],
)
async def test_a_function_that_cannot_be_given_its_parameters_is_not_declared(function: Any, fault: str) -> None:
    with pytest.raises(ContractError, match=fault):
        joining(lambda app: app.cancels("booking")(function))
    with pytest.raises(ContractError, match="another cancels has its name"):
        joining(lambda app: [app.cancels("booking")(lambda_free) for _ in range(2)])


def lambda_free(booking: str) -> None:
    """Cancel nothing."""
