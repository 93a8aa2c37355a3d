"""Purchases and their providers: a crash is survived, and nothing is charged twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from tests.cases import rows
from tests.payments import EUR, METHODS, PaymentServer, buy, ledger, merchant_headers, payment_server, selling
from tests.service import AGENT
from tests.stateful import StatefulBench, keeping

from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.errors import ConfigError
from bespeak.extensions.payments.http_provider import HttpProvider
from bespeak.extensions.payments.purchases import Purchase, Sales, decode, open_purchases
from bespeak.extensions.payments.settings import AccountSettings, Money, PaymentSettings
from bespeak.extensions.payments.store import (
    CarriedOut,
    CheckLedger,
    Declined,
    LedgerProvider,
    ListAccounts,
    MoveMoney,
    Order,
    Phase,
    Provider,
    Unclear,
    account_of,
)
from bespeak.runtime.handling import to_json
from bespeak.state.store.commands.records import Record
from bespeak.state.store.settings import open_store

pytestmark = pytest.mark.anyio
NOTHING = Sales(cast("Any", None), {}, ())


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[PaymentServer]:
    monkeypatch.setenv("BESPEAK_PAYMENTS_TOKEN", "secret")
    monkeypatch.setattr("bespeak.extensions.payments.purchases._PAUSE", 0.02)
    with payment_server() as running:
        yield running


def outside(provider: PaymentServer, **fields: Any) -> ServerDocument:
    return ServerDocument(
        extension_tables={"payments": PaymentSettings(provider=provider.address, **{"timeout": 5.0, **fields})}
    )


async def until(bench: StatefulBench, purchase_id: str, *states: str) -> Record:
    """Wait until the due loop has brought a purchase into one of these states."""
    async with asyncio.timeout(20):
        while True:
            record = await bench.bench.server.part("payments").find(purchase_id)
            assert record is not None
            if record.state in states:
                return record
            await asyncio.sleep(0.01)


async def cancel(bench: StatefulBench, target_id: str, **fields: Any) -> Any:
    return await bench.send("CANCEL", "/", {"target_id": target_id, **fields})


async def test_a_hold_expires_on_time_and_frees_the_money() -> None:
    document = ledger(hold=0.05)
    async with keeping(**selling(), document=document) as bench:
        hold_id = (await buy(bench, confirm_immediately=False)).json["result"]["hold_id"]
        await until(bench, hold_id, "expired")
        found = {one.account: one.balance for one in await bench.store.read(ListAccounts())}
        assert (found[account_of(AGENT)], found["held"]) == (10_000, 0)
        assert await bench.store.read(CheckLedger()) == []
        reply = await bench.send(
            "CONFIRM", "/", {"target_id": hold_id, "status": "accepted"}, authority_scope="payments:purchase"
        )
        assert (reply.status, reply.error["code"]) == (408, "hold-expired")


async def test_a_hold_expires_after_a_restart(tmp_path: Path) -> None:
    place = str(tmp_path / "store.db")
    store = open_store(place, role="sole")
    async with keeping(**selling(), document=ledger(hold=0.3), store=store) as bench:
        hold_id = (await buy(bench, confirm_immediately=False)).json["result"]["hold_id"]
    store = open_store(place, role="sole")
    async with keeping(**selling(), document=ledger(hold=0.3), store=store) as bench:
        await until(bench, hold_id, "expired")
        found = {one.account: one.balance for one in await bench.store.read(ListAccounts())}
        assert (found[account_of(AGENT)], found["opening"]) == (10_000, -10_000)


@pytest.mark.requirement("METHODS-5.7-2")
async def test_a_provider_outside_holds_and_settles(provider: PaymentServer) -> None:
    async with keeping(**selling(), document=outside(provider)) as bench:
        receipt = (await buy(bench, payment_method="card-1")).json["result"]
        name = receipt["purchase_id"]
        assert (receipt["status"], receipt["provider_reference"]) == ("settled", "ref-1")
        assert provider.requests == [("hold", f"{name}/hold"), ("settle", f"{name}/settle")]
        order = provider.orders[f"{name}/settle"]
        assert (order["amount"], order["reference"]) == ({"value": "10.00", "currency": "EUR"}, "ref-0")
        assert (order["payment_method"], order["principal_id"]) == ("card-1", AGENT)


async def test_a_hold_outside_is_settled_refunded_or_released(provider: PaymentServer) -> None:
    async with keeping(**selling(), document=outside(provider)) as bench:
        first, second = [(await buy(bench, confirm_immediately=False)).json["result"]["hold_id"] for _ in range(2)]
        body = {"target_id": first, "status": "accepted"}
        done = await bench.send("CONFIRM", "/", body, authority_scope="payments:purchase")
        assert done.json["result"]["purchase"]["status"] == "settled"
        provider.faults["refund"] = ["declined"]
        assert (await cancel(bench, first, refund_policy="full")).refusal == (422, "refund-impossible")
        assert (await cancel(bench, first, refund_policy="full")).json["result"]["status"] == "cancelled"
        assert (await cancel(bench, second)).json["result"]["refund"]["policy"] == "release"
        assert [phase for phase, _ in provider.requests[2:]] == ["settle", "refund", "refund", "release"]
        assert len({key for phase, key in provider.requests if phase == "refund"}) == 2


async def test_a_declined_payment_is_told_with_its_reason(provider: PaymentServer) -> None:
    provider.faults["hold"] = ["declined"]
    async with keeping(**selling(), document=outside(provider)) as bench:
        reply = await buy(bench)
        assert (reply.status, reply.error["code"]) == (409, "insufficient-funds")
        assert (await until(bench, reply.error["purchase_id"], "failed")).state == "failed"
        assert provider.charged() == 0


async def test_a_settlement_that_is_declined_releases_the_hold(provider: PaymentServer) -> None:
    provider.faults["settle"] = ["declined"]
    async with keeping(**selling(), document=outside(provider)) as bench:
        assert (await buy(bench)).status == 409
        assert [phase for phase, _ in provider.requests] == ["hold", "settle", "release"]


@pytest.mark.parametrize("fault", ["500", "wrong", "other", "silent"])
@pytest.mark.parametrize("phase", ["hold", "settle"])
async def test_unclear_answer_is_asked_for_again_with_same_key(provider: PaymentServer, phase: str, fault: str) -> None:
    provider.faults[phase] = [fault]
    timeout = 0.3 if fault == "silent" else 5.0
    async with keeping(**selling(), document=outside(provider, timeout=timeout)) as bench:
        reply = await buy(bench)
        assert (reply.status, reply.json["result"]["status"]) == (202, "pending")
        purchase_id = reply.json["result"]["purchase_id"]
        assert (await until(bench, purchase_id, "settled", "failed")).state == "settled"
        assert provider.requests.count((phase, f"{purchase_id}/{phase}")) == 2
        assert provider.charged() == 1


async def test_a_repeated_key_finds_the_pending_purchase(provider: PaymentServer) -> None:
    provider.faults["settle"] = ["500"]
    async with keeping(**selling(), document=outside(provider)) as bench:
        first = await buy(bench, {"idempotency_key": "k-1"})
        assert (first.status, first.error["code"], first.header("Retry-After")) == (503, "purchase-pending", "5")
        again = await buy(bench, {"idempotency_key": "k-1"})
        assert again.json["result"]["purchase_id"] == first.error["purchase_id"]
        assert provider.charged() == 1


async def test_a_key_of_a_pending_purchase_is_not_for_another_one(provider: PaymentServer) -> None:
    provider.faults["settle"] = ["500"]
    async with keeping(**selling(), document=outside(provider)) as bench:
        await buy(bench, {"idempotency_key": "k-1"})
        other = await buy(bench, {"idempotency_key": "k-1"}, item={"sale": "seat", "input": {"row": "1A"}})
        assert (other.status, other.error["code"]) == (409, "idempotency-key-reused")


async def test_a_hold_that_stays_unclear_is_released(provider: PaymentServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.payments.purchases._MOST_HOLDS", 1)
    provider.faults["hold"] = ["wrong"]
    async with keeping(**selling(), document=outside(provider)) as bench:
        assert (await buy(bench)).refusal == (403, "payment-refused")
        assert [phase for phase, _ in provider.requests] == ["hold", "release"]
        assert provider.charged() == 0


async def test_the_ledger_and_a_server_outside_with_a_token_are_providers() -> None:
    with pytest.raises(ConfigError, match="BESPEAK_PAYMENTS_TOKEN"):
        open_purchases(open_store("memory"), PaymentSettings(provider="https://pay.example"), {}, NOTHING)
    providers: list[Provider] = [LedgerProvider(), HttpProvider("https://pay.example", "secret", 1.0)]
    assert [provider.in_store for provider in providers] == [True, False]


async def test_an_account_that_cannot_be_opened_stops_the_start() -> None:
    most = "9999999999999.99"
    accounts = tuple(AccountSettings(principal=f"p{n}", currency="EUR", opening=most) for n in range(5000))
    async with keeping(**selling()) as bench:
        purchases = open_purchases(bench.store, PaymentSettings(accounts=accounts), {}, NOTHING)
        with pytest.raises(ConfigError, match="insufficient-funds"):
            await purchases.start()


async def test_steps_of_one_keyed_call_are_purchases_of_their_own(provider: PaymentServer) -> None:
    async with keeping(**selling(methods=(*METHODS, "CHAIN", "BATCH")), document=outside(provider)) as bench:
        step = {"method": "PURCHASE", "parameters": {"item": "seat", "principal_id": AGENT, "amount": EUR}}
        headers = {**merchant_headers(bench), "idempotency_key": "k-1"}
        replies = [await bench.send("CHAIN", "/", {"steps": [step, step]}, **headers) for _ in range(2)]
        assert replies[0].json == replies[1].json
        assert [one["code"] for one in replies[0].json["result"]["steps"]] == [200, 200]
        assert provider.charged() == 2


async def test_a_step_that_stays_unclear_is_pending_and_paid_once(provider: PaymentServer) -> None:
    provider.faults["settle"] = ["500"]
    async with keeping(**selling(methods=(*METHODS, "CHAIN")), document=outside(provider)) as bench:
        step = {"method": "PURCHASE", "parameters": {"item": "seat", "principal_id": AGENT, "amount": EUR}}
        reply = await bench.send("CHAIN", "/", {"steps": [step]}, **merchant_headers(bench))
        [made] = reply.json["result"]["steps"]
        result = made["output"].get("result", made["output"])
        assert (made["code"], result["status"]) == (202, "pending")
        await until(bench, result["purchase_id"], "settled")
        assert provider.charged() == 1


@pytest.mark.process
async def test_two_servers_on_one_database_share_the_accounts(postgres_dsn: str) -> None:
    document = ledger("50.00", hold=3.0)
    async with (
        keeping(**selling(), document=document, store=open_store(postgres_dsn)) as first,
        keeping(**selling(), document=document, store=open_store(postgres_dsn)) as second,
    ):
        replies = await asyncio.gather(
            *(buy(bench, confirm_immediately=False) for _ in range(6) for bench in (first, second))
        )
        assert sorted(reply.status for reply in replies) == [200] * 5 + [409] * 7
        for reply in replies:
            if reply.status == 200:
                await until(second, reply.json["result"]["hold_id"], "expired")
        found = {one.account: one.balance for one in await first.store.read(ListAccounts())}
        assert (found[account_of(AGENT)], found["held"]) == (5000, 0)
        assert await second.store.read(CheckLedger()) == []


SEAT = Purchase(item="seat", principal_id="acme", money=Money(1000, "EUR"), merchant={})


@rows(
    "purchase, state, phase",
    (SEAT, "pending", "fulfil"),
    (Purchase(item="seat", principal_id="a", money=SEAT.money, merchant={}, immediate=False), "held", "hold"),
    (SEAT.with_phase("settle", "settled"), "settled", "settle"),
    (SEAT.with_phase("release", "expired"), "expired", "release"),
    (SEAT.with_phase("refund", "cancelled", refund=5), "cancelled", "refund"),
)
def test_a_phase_that_was_done_leads_to_the_next_state(purchase: Purchase, state: str, phase: str) -> None:
    after, found = purchase.done("ref-1")
    assert (found, after.phase, after.reference) == (state, phase, "ref-1")


@pytest.mark.parametrize(
    ("phase", "state", "next_phase"),
    [("hold", "failed", "hold"), ("settle", "pending", "release"), ("refund", "settled", "refund")],
)
def test_a_phase_that_was_declined_keeps_no_money(phase: str, state: str, next_phase: str) -> None:
    after, found = SEAT.with_phase(phase, "settled").declined("no", "closed")
    assert after.refused is not None
    assert (found, after.phase, after.refused.code) == (state, next_phase, "payment-refused")
    assert "closed" in after.refused.message


def test_a_purchase_is_text_and_a_refund_after_a_declined_one_another_order() -> None:
    first = SEAT.with_phase("refund", "cancelled", refund=5)
    assert (first.key("pur-1"), first.part) == ("pur-1/refund", Money(5, "EUR"))
    assert first.declined("no", "closed")[0].key("pur-1") == "pur-1/refund-1"
    assert decode(to_json(SEAT)) == SEAT


@rows(
    "phase, source, target",
    ("hold", "principal/acme", "held"),
    ("settle", "held", "sales"),
    ("release", "held", "principal/acme"),
    ("refund", "sales", "principal/acme"),
)
async def test_each_phase_is_one_transaction(phase: Phase, source: str, target: str) -> None:
    order = Order("pur-1", f"pur-1/{phase}", "acme", Money(1000, "EUR"))
    done = await LedgerProvider().carry_out(phase, order)
    assert done.commands == (MoveMoney(f"pur-1/{phase}", source, target, "EUR", 1000),)


ORDER = Order("pur-1", "pur-1/hold", "acme", Money(1000, "EUR"))


@pytest.fixture
async def server() -> AsyncIterator[PaymentServer]:
    with payment_server() as running:
        yield running


async def ask(server: PaymentServer, token: str = "secret", timeout: float = 5.0) -> CarriedOut | Declined | Unclear:
    provider = HttpProvider(f"{server.address}/v1/", token, timeout)
    try:
        return await provider.carry_out("hold", ORDER)
    finally:
        await provider.close()


async def test_an_order_is_sent_with_its_key_and_only_silence_is_unclear(server: PaymentServer) -> None:
    assert [await ask(server), await ask(server)] == [CarriedOut("ref-0")] * 2
    assert server.requests == [("hold", "pur-1/hold")] * 2
    assert server.orders["pur-1/hold"]["amount"] == {"value": "10.00", "currency": "EUR"}
    assert await ask(server, token="stolen") == Declined("insufficient-funds", "no money")
    server.faults["hold"] = ["silent"]
    assert await ask(server, timeout=0.1) == Unclear("the provider did not answer within 0.1 s")


@pytest.mark.parametrize("fault", ["500", "wrong", "other", "large"])
async def test_any_other_answer_is_unclear(server: PaymentServer, fault: str) -> None:
    server.faults["hold"] = [fault]
    assert isinstance(await ask(server), Unclear)


async def test_a_provider_that_is_gone_is_unclear() -> None:
    with payment_server() as server:
        pass
    outcome = await ask(server)
    assert isinstance(outcome, Unclear)
    assert "cannot be reached" in outcome.message
