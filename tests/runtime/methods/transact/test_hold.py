"""A hold is settled or released once; what was paid is refunded once, and never more than was paid."""

from __future__ import annotations

from typing import Any

import pytest
from tests.payments import METHODS, buy, ledger
from tests.service import AGENT
from tests.stateful import StatefulBench, keeping

from bespeak.state.store.commands.ledger import CheckLedger, ListAccounts, account_of

pytestmark = pytest.mark.anyio

PAYS = {"authority_scope": "payments:purchase"}


async def balances(bench: StatefulBench) -> tuple[int, int, int]:
    assert await bench.store.read(CheckLedger()) == []
    found = {one.account: one.balance for one in await bench.store.read(ListAccounts())}
    return found[account_of(AGENT)], found.get("held", 0), found.get("sales", 0)


async def bought(bench: StatefulBench, **fields: Any) -> str:
    purchase_id: str = (await buy(bench, **fields)).json["result"]["purchase_id"]
    return purchase_id


async def held(bench: StatefulBench) -> str:
    return await bought(bench, confirm_immediately=False)


async def confirm(bench: StatefulBench, hold_id: str, decision: str = "accepted", **headers: str) -> Any:
    return await bench.send("CONFIRM", "/", {"target_id": hold_id, "status": decision}, **{**PAYS, **headers})


async def cancel(bench: StatefulBench, target_id: str, **fields: Any) -> Any:
    return await bench.send("CANCEL", "/", {"target_id": target_id, **fields})


async def test_a_hold_is_settled_once() -> None:
    async with keeping(methods=METHODS, document=ledger()) as bench:
        hold_id = await held(bench)
        reply = await confirm(bench, hold_id)
        assert (reply.status, reply.json["result"]["purchase"]["status"]) == (200, "settled")
        assert await balances(bench) == (9000, 0, 1000)
        again = await confirm(bench, hold_id)
        assert (again.status, again.error["code"]) == (409, "already-decided")
        assert await balances(bench) == (9000, 0, 1000)


async def test_a_rejected_hold_frees_the_money() -> None:
    async with keeping(methods=METHODS, document=ledger()) as bench:
        hold_id = await held(bench)
        assert (await confirm(bench, hold_id, "rejected")).status == 200
        assert await balances(bench) == (10_000, 0, 0)
        assert (await confirm(bench, hold_id)).status == 409


async def test_settling_needs_the_scope_the_budget_and_the_buyer() -> None:
    async with keeping(methods=METHODS, document=ledger()) as bench:
        hold_id = await held(bench)
        assert (await confirm(bench, hold_id, authority_scope="news:read")).status == 455
        assert (await confirm(bench, hold_id, budget_limit="EUR=9")).status == 456
        assert (await confirm(bench, hold_id, "deferred")).status == 422
        theirs = await bench.send("CONFIRM", "/", {"target_id": hold_id, "status": "accepted"}, agent="b" * 64, **PAYS)
        nothing = await confirm(bench, "pur-0")
        assert (theirs.status, nothing.status) == (404, 404)
        assert await balances(bench) == (9000, 1000, 0)


async def test_a_cancelled_hold_frees_the_money() -> None:
    async with keeping(methods=METHODS, document=ledger()) as bench:
        hold_id = await held(bench)
        receipt = (await cancel(bench, hold_id)).json["result"]
        assert (receipt["status"], receipt["refund"]["policy"]) == ("cancelled", "release")
        assert await balances(bench) == (10_000, 0, 0)
        assert (await cancel(bench, hold_id)).error["code"] == "already-cancelled"
        assert (await confirm(bench, hold_id)).status == 409


@pytest.mark.requirement("METHODS-5.5-3")
@pytest.mark.parametrize(
    ("fields", "policy", "own"),
    [
        ({"refund_policy": "full"}, "full", 10_000),
        ({"refund_policy": "none"}, "none", 9000),
        ({"refund_policy": "partial", "refund_amount": {"value": "2.50", "currency": "EUR"}}, "partial", 9250),
    ],
)
async def test_a_settled_purchase_is_refunded_as_asked(fields: dict[str, Any], policy: str, own: int) -> None:
    async with keeping(methods=METHODS, document=ledger()) as bench:
        purchase_id = await bought(bench)
        receipt = (await cancel(bench, purchase_id, **fields)).json["result"]
        assert (receipt["status"], receipt["refund"]["policy"]) == ("cancelled", policy)
        assert await balances(bench) == (own, 0, 10_000 - own)
        assert (await cancel(bench, purchase_id, **fields)).error["code"] == "already-cancelled"
        assert await balances(bench) == (own, 0, 10_000 - own)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, "not-cancellable"),
        ({"refund_policy": "partial"}, "refund-impossible"),
        ({"refund_policy": "full", "refund_amount": {"value": "1", "currency": "EUR"}}, "refund-impossible"),
        ({"refund_policy": "partial", "refund_amount": {"value": "10.01", "currency": "EUR"}}, "refund-impossible"),
        ({"refund_policy": "partial", "refund_amount": {"value": "0", "currency": "EUR"}}, "refund-impossible"),
        ({"refund_policy": "partial", "refund_amount": {"value": "1", "currency": "USD"}}, "refund-impossible"),
    ],
)
async def test_a_refund_that_is_not_possible_changes_nothing(fields: dict[str, Any], code: str) -> None:
    async with keeping(methods=METHODS, document=ledger()) as bench:
        reply = await cancel(bench, await bought(bench), **fields)
        assert (reply.status, reply.error["code"]) == (409 if code == "not-cancellable" else 422, code)
        assert await balances(bench) == (9000, 0, 1000)
