"""CANCEL revokes what belongs to the caller, once."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stateful import StatefulBench, keeping

pytestmark = pytest.mark.anyio

METHODS = ("REGISTER", "CANCEL", "SUBMIT")


async def cancel(bench: StatefulBench, target_id: str, **fields: Any) -> Any:
    agent = {"agent": fields.pop("agent")} if "agent" in fields else {}
    return await bench.send("CANCEL", "/", {"target_id": target_id, **fields}, **agent)


async def registered(bench: StatefulBench, entity_type: str = "contract") -> str:
    body = {"entity_type": entity_type, "data": {"channel": "news"}}
    target_id: str = (await bench.send("REGISTER", "/", body)).json["result"]["entity_id"]
    return target_id


@pytest.mark.requirement("METHODS-5.5-2", "METHODS-5.5-3", "METHODS-5.5-4")
@pytest.mark.parametrize("entity_type", ["contract", "subscription"])
async def test_what_was_registered_is_cancelled_once(entity_type: str) -> None:
    async with keeping(methods=METHODS) as bench:
        target_id = await registered(bench, entity_type)
        done = await cancel(bench, target_id, reason="mistake")
        assert (done.status, done.json["result"]["status"]) == (200, "cancelled")
        again = await cancel(bench, target_id)
        assert (again.status, again.error["code"]) == (409, "already-cancelled")


@pytest.mark.requirement("METHODS-5.5-5")
async def test_others_cannot_tell_that_it_exists() -> None:
    async with keeping(methods=METHODS) as bench:
        target_id = await registered(bench)
        theirs = await cancel(bench, target_id, agent="b" * 64)
        nothing = await cancel(bench, "ent-0", agent="b" * 64)
        assert (
            (theirs.status, theirs.error["code"])
            == (nothing.status, nothing.error["code"])
            == (404, "target-not-found")
        )


@pytest.mark.requirement("METHODS-5.5-5")
async def test_what_costs_nothing_is_not_refunded() -> None:
    async with keeping(methods=METHODS) as bench:
        reply = await cancel(bench, await registered(bench), refund_policy="full")
        assert (reply.status, reply.error["code"]) == (422, "refund-impossible")


async def test_a_submitted_item_is_withdrawn() -> None:
    async with keeping(methods=METHODS) as bench:
        item = (await bench.send("SUBMIT", "/", {"target": "invoices", "payload": 1})).json["result"]
        assert (await cancel(bench, item["tracking_id"])).json["result"]["kind"] == "submission"


async def test_the_subject_of_a_revoked_grant_is_told_if_the_caller_wants_that() -> None:
    async with keeping(methods=(*METHODS, "AUTHORIZE")) as bench:
        for wanted in (False, True):
            given = {"subject": "b" * 64, "resource": "*", "scope": "news:read"}
            granted = await bench.send("AUTHORIZE", "/", given, authority_scope="authorization:grant, news:read")
            target_id = granted.json["result"]["grant_id"]
            done = await cancel(bench, target_id, notify_parties=wanted, reason={"code": "moved"})
            assert done.json["result"]["notified"] == (["b" * 64] if wanted else [])
        inbox = (await bench.send("QUERY", "/messages", {}, agent="b" * 64)).json["result"]["messages"]
        assert [(one["kind"], one["content"]) for one in inbox] == [
            (
                "cancellation",
                {"target_id": target_id, "kind": "grant", "status": "cancelled", "reason": {"code": "moved"}},
            )
        ]
