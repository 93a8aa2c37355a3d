"""Sales: the seller's functions decide the price, deliver while the money is held, and take back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.cases import rows
from tests.extensions.messages.conftest import shared_place
from tests.messaging import BOB, inbox
from tests.payments import METHODS, PaymentServer, Seat, buy, ledger, payment_server, sale_of, selling
from tests.service import AGENT
from tests.stateful import StatefulBench, audited_backend, keeping

from bespeak import App, Context, ContractError, Price, Refusal, Sold
from bespeak.contract.agent import Agent
from bespeak.contract.policy import Policies
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.payments import purchases
from bespeak.extensions.payments.settings import AccountSettings, PaymentSettings
from bespeak.extensions.payments.store import CheckLedger, ListAccounts, account_of
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, ListRecords, PutRecord
from bespeak.state.store.settings import open_store

anyio_backend = audited_backend
pytestmark = pytest.mark.anyio

__all__ = ["shared_place"]

DEAR = {"value": "50.00", "currency": "EUR"}
PAYS = {"authority_scope": "payments:purchase"}


def item(**given: str) -> dict[str, Any]:
    return {"sale": "seat", "input": given}


async def balances(bench: StatefulBench) -> tuple[int, int, int]:
    assert await bench.store.read(CheckLedger()) == []
    found = {one.account: one.balance for one in await bench.store.read(ListAccounts())}
    return found[account_of(AGENT)], found.get("held", 0), found.get("sales", 0)


async def check(bench: StatefulBench, target: str, agent: str = AGENT) -> Any:
    return await bench.send("CHECK", "/", {"target": target}, agent=agent)


async def cancel(bench: StatefulBench, target: str, **fields: Any) -> Any:
    return await bench.send("CANCEL", "/", {"target_id": target, "refund_policy": "full", **fields})


async def confirm(bench: StatefulBench, target: str, **headers: str) -> Any:
    return await bench.send("CONFIRM", "/", {"target_id": target, "status": "accepted"}, **{**PAYS, **headers})


async def ended(bench: StatefulBench, purchase_id: str) -> Any:
    """Return what CHECK tells of a purchase when it is not pending any more."""
    async with asyncio.timeout(20):
        while (found := (await check(bench, purchase_id)).json["result"])["status"] == "pending":
            await asyncio.sleep(0.01)
    return found


# Price and delivery.


async def test_the_price_is_charged_not_the_amount_and_the_receipt_has_the_item(shared_place: str) -> None:
    sale, seller = sale_of()
    async with keeping(**selling(sale), document=ledger(), store=open_store(shared_place)) as bench:
        receipt = (await buy(bench, item=item(row="3C"), amount=DEAR)).json["result"]
        assert (receipt["status"], receipt["amount"]["value"]) == ("settled", "10.00")
        assert receipt["item"] == {"sale": "seat", "input": {"row": "3C"}}
        assert receipt["delivered"] == {"ticket": "T-3C", "paid": "10.00", "for": "aaaa"}
        assert seller.acts == [(f"{receipt['purchase_id']}/fulfil", "3C")]
        assert await balances(bench) == (9000, 0, 1000)
        told = (await check(bench, receipt["purchase_id"])).json["result"]
        assert (told["status"], told["details"]["delivered"]["ticket"]) == ("settled", "T-3C")
        assert (await check(bench, receipt["purchase_id"], BOB)).status == 404


async def test_a_price_above_the_amount_is_told_and_nothing_is_held() -> None:
    sale, seller = sale_of()
    async with keeping(**selling(sale), document=ledger()) as bench:
        reply = await buy(bench, item=item(value="10.01"))
        assert (reply.refusal, reply.error["price"]) == ((409, "price-changed"), {"value": "10.01", "currency": "EUR"})
        assert (await buy(bench, item=item(value="10.01"), amount=reply.error["price"])).status == 200
        assert len(seller.acts) == 1


async def test_the_budget_counts_the_price_and_not_the_amount() -> None:
    async with keeping(**selling(), document=ledger()) as bench:
        assert (await buy(bench, {"budget_limit": "EUR=10.00"}, amount=DEAR)).status == 200
        assert (await buy(bench, {"budget_limit": "EUR=9.99"}, amount=DEAR)).refusal == (456, "budget-exceeded")


async def test_the_sales_that_an_agent_may_not_use_do_not_exist_for_it() -> None:
    sale, _ = sale_of()
    hidden, _ = sale_of(name="yacht", scopes=["yachts:buy"])
    async with keeping(**selling(sale, hidden), document=ledger()) as bench:
        for name in ("yacht", "mansion"):
            reply = await buy(bench, item=name)
            assert (reply.refusal, reply.error["sales"]) == ((404, "unknown-item"), ["seat"])
        allowed = {"authority_scope": "payments:purchase, yachts:buy"}
        assert (await buy(bench, allowed, item="yacht")).status == 200


async def test_the_places_of_a_wrong_input_are_named() -> None:
    async with keeping(**selling(), document=ledger()) as bench:
        reply = await buy(bench, item={"sale": "seat", "input": {"row": 12, "colour": "red"}})
        assert reply.error["field"].startswith("/item/input")
        assert len(reply.error["violations"]) == 2


@pytest.mark.parametrize("confirmed", [False, True])
async def test_a_refusal_of_the_seller_releases_the_money_and_is_the_answer(confirmed: bool) -> None:
    sale, seller = sale_of()
    async with keeping(**selling(sale), document=ledger()) as bench:
        if confirmed:
            hold_id = (await buy(bench, confirm_immediately=False)).json["result"]["hold_id"]
            assert (seller.acts, await balances(bench)) == ([], (9000, 1000, 0))
        seller.failures = [Refusal("taken", "Somebody was faster.", free=["4D"])]
        reply = await confirm(bench, hold_id) if confirmed else await buy(bench)
        assert (reply.refusal, reply.error["details"]) == ((422, "taken"), {"free": ["4D"]})
        assert await balances(bench) == (10_000, 0, 0)
        told = (await check(bench, reply.error["purchase_id"])).json["result"]
        assert (told["status"], told["details"]["error"]["code"]) == ("failed", "taken")


@pytest.mark.parametrize("fault", [RuntimeError("the airline does not answer"), Refusal("unheard_of", "?")])
async def test_an_exception_of_the_seller_releases_the_money(fault: Exception) -> None:
    sale, seller = sale_of()
    async with keeping(**selling(sale), document=ledger()) as bench:
        seller.failures = [fault]
        replies = [await buy(bench, {"idempotency_key": "k-1"}) for _ in range(2)]
        assert [reply.refusal for reply in replies] == [(500, "fulfilment-failed")] * 2
        assert (len(seller.acts), await balances(bench)) == (1, (10_000, 0, 0))
        assert (await buy(bench, {"idempotency_key": "k-2"})).status == 200


async def test_what_breaks_the_declared_type_is_not_delivered() -> None:
    class Broken:
        async def price(self) -> Price:
            return Price("1", "EUR")

        async def fulfil(self) -> dict[str, str]:
            return None  # type: ignore[return-value] # on purpose

    class Unpriced(Broken):
        async def price(self) -> Price:
            return None  # type: ignore[return-value] # on purpose

    async with keeping(**selling(sale_of(Broken)[0], sale_of(Unpriced, "gift")[0]), document=ledger()) as bench:
        assert (await buy(bench)).refusal == (500, "fulfilment-failed")
        assert (await buy(bench, item="gift")).refusal == (500, "output-validation-failed")
        assert await balances(bench) == (10_000, 0, 0)


async def test_a_seller_adds_methods_in_the_transaction_of_its_sale() -> None:
    class Letter:
        async def price(self) -> Price:
            return Price("1", "EUR")

        async def fulfil(self, context: Context) -> dict[str, str]:
            context.notify(BOB, {"sold": "a letter"})
            return {}

    async with keeping(**selling(sale_of(Letter)[0]), document=ledger()) as bench:
        assert (await buy(bench)).status == 200
        assert [one["content"] for one in await inbox(bench)] == [{"sold": "a letter"}]


async def test_a_delivery_that_is_too_large_is_paid_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purchases, "MOST_DELIVERED", 10)
    async with keeping(**selling(), document=ledger()) as bench:
        receipt = (await buy(bench)).json["result"]
        assert (receipt["status"], receipt["delivered"]["code"]) == ("settled", "result-too-large")


async def test_a_key_is_one_purchase_at_one_price() -> None:
    sale, seller = sale_of()
    async with keeping(**selling(sale), document=ledger()) as bench:
        replies = [await buy(bench, {"idempotency_key": "k-1"}) for _ in range(3)]
        assert len({reply.json["result"]["purchase_id"] for reply in replies}) == 1
        assert len(seller.acts) == 1


async def test_a_caller_that_leaves_does_not_stop_its_purchase() -> None:
    begun, release = asyncio.Event(), asyncio.Event()

    class Slow(Seat):
        async def fulfil(
            self, context: Context, sold: Sold, row: str = "12A", value: str = "10.00", currency: str = "EUR"
        ) -> dict[str, str]:
            begun.set()
            await release.wait()
            return {"ticket": row}

    async with keeping(**selling(sale_of(Slow)[0]), document=ledger()) as bench:
        buying = asyncio.create_task(buy(bench))
        await begun.wait()
        buying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await buying
        release.set()
        [record] = await bench.store.read(ListRecords("purchase"))
        assert (await ended(bench, record.record_id))["status"] == "settled"
        assert await balances(bench) == (9000, 0, 1000)


async def test_another_party_confirms_a_purchase_once() -> None:
    policies = Policies(scope_required_for_invocation=False, confirm_irreversible=True)
    sale, seller = sale_of()
    async with keeping(**selling(sale), document=ledger(), policies=policies) as bench:
        case_id = (await buy(bench)).error["confirmation_id"]
        decision = {"target_id": case_id, "status": "accepted"}
        await bench.send("CONFIRM", "/", decision, agent=BOB, authority_scope="confirmation:decide")
        assert (await buy(bench, {"confirmation_id": case_id})).json["result"]["status"] == "settled"
        assert len(seller.acts) == 1


# Refunds.


@rows(
    "asked, given_back, refund, own",
    ({}, None, {"policy": "full", "value": "10.00"}, 10_000),
    ({}, Price("4.00", "EUR"), {"policy": "partial", "value": "4.00"}, 9400),
    ({}, Price("0", "EUR"), {"policy": "none", "value": "0.00"}, 9000),
    ({}, Price("70.00", "EUR"), {"policy": "full", "value": "10.00"}, 10_000),
    ({}, Price("5.00", "USD"), {"policy": "full", "value": "10.00"}, 10_000),
    ({"refund_policy": "none"}, None, {"policy": "none", "value": "0.00"}, 9000),
    ({"refund_policy": "none"}, Price("1.00", "EUR"), {"policy": "partial", "value": "1.00"}, 9100),
    (
        {"refund_policy": "partial", "refund_amount": {"value": "2.50", "currency": "EUR"}},
        *(None, {"policy": "partial", "value": "2.50"}, 9250),
    ),
    ({"refund_policy": "partial"}, Price("3.00", "EUR"), {"policy": "partial", "value": "3.00"}, 9300),
)
@pytest.mark.requirement("METHODS-5.5-3")
async def test_the_seller_decides_how_much_is_given_back(
    asked: dict[str, Any], given_back: Price | None, refund: dict[str, str], own: int
) -> None:
    sale, seller = sale_of()
    async with keeping(**selling(sale), document=ledger()) as bench:
        purchase_id = (await buy(bench)).json["result"]["purchase_id"]
        seller.given_back = given_back
        told = (await cancel(bench, purchase_id, **asked)).json["result"]
        assert (told["status"], told["refund"]["policy"]) == ("cancelled", refund["policy"])
        assert told["refund"]["amount"]["value"] == refund["value"]
        assert await balances(bench) == (own, 0, 10_000 - own)
        assert seller.acts[1][0] == f"{purchase_id}/return"
        assert (await cancel(bench, purchase_id)).refusal == (409, "already-cancelled")
        assert len(seller.acts) == 2


async def test_a_seller_that_does_not_take_back_leaves_the_purchase_as_it_is() -> None:
    sale, seller = sale_of()
    async with keeping(**selling(sale), document=ledger()) as bench:
        purchase_id = (await buy(bench)).json["result"]["purchase_id"]
        seller.failures = [Refusal("used", "The ticket was used."), RuntimeError("the airline does not answer")]
        reply = await cancel(bench, purchase_id)
        assert (reply.refusal, "The ticket was used." in reply.error["message"]) == ((422, "refund-impossible"), True)
        assert (await cancel(bench, purchase_id)).refusal == (500, "server-error")
        assert await balances(bench) == (9000, 0, 1000)
        assert (await cancel(bench, purchase_id)).status == 200
        keys = [key for key, _ in seller.acts[1:]]
        assert keys == [f"{purchase_id}/return", f"{purchase_id}/return-1", f"{purchase_id}/return-2"]


@pytest.mark.requirement("METHODS-5.5-3", "METHODS-5.5-5")
async def test_a_part_that_neither_buyer_nor_seller_names_is_not_refunded() -> None:
    class Obliging(Seat):
        async def refund(self, row: str = "12A", value: str = "10.00", currency: str = "EUR") -> None:  # type: ignore[override]
            """Take a ticket back."""

    async with keeping(**selling(sale_of(Obliging)[0]), document=ledger()) as bench:
        purchase_id = (await buy(bench)).json["result"]["purchase_id"]
        reply = await cancel(bench, purchase_id, refund_policy="partial")
        assert (reply.refusal, reply.error["field"]) == ((422, "refund-impossible"), "/refund_amount")
        assert await balances(bench) == (9000, 0, 1000)
        held = (await buy(bench, confirm_immediately=False)).json["result"]["hold_id"]
        assert (await cancel(bench, held, refund_policy="partial")).refusal == (422, "refund-impossible")


async def test_a_sale_without_a_refund_function_takes_nothing_back_but_releases_a_hold() -> None:
    class Final:
        async def price(self) -> Price:
            return Price("1", "EUR")

        async def fulfil(self) -> dict[str, str]:
            return {}

    async with keeping(**selling(sale_of(Final)[0]), document=ledger()) as bench:
        purchase_id = (await buy(bench)).json["result"]["purchase_id"]
        for policy in ("full", "none"):
            assert (await cancel(bench, purchase_id, refund_policy=policy)).refusal == (422, "refund-impossible")
        held = (await buy(bench, confirm_immediately=False)).json["result"]["hold_id"]
        assert (await bench.send("CANCEL", "/", {"target_id": held})).status == 200
        assert await balances(bench) == (9900, 0, 100)


# QUOTE.


async def quote(bench: StatefulBench, **given: Any) -> Any:
    parameters = {"principal_id": AGENT, "item": "seat", **given}
    return await bench.send("QUOTE", "/", {"method": "PURCHASE", "parameters": parameters})


async def test_quote_is_the_price_of_the_seller() -> None:
    sale, seller = sale_of()
    async with keeping(**selling(sale), document=ledger()) as bench:
        reply = await quote(bench, item=item(value="12.34"))
        told = reply.json["result"]
        assert told["estimated_cost"]["EUR"] == {"min": 12.34, "expected": 12.34, "max": 12.34}
        assert (told["basis"], told["confidence"]) == ("price", 1.0)
        assert "EUR=12.34" in reply.header("Cost-Estimate")
        for wrong in ({"item": "lamp"}, {"item": item(row="99Z")}, {"item": item(colour="red")}):
            assert (await quote(bench, **wrong)).refusal == (422, "invalid-parameters")
        assert (await quote(bench, item=item(value="0"))).status == 500
        assert (seller.acts, await balances(bench)) == ([], (10_000, 0, 0))


async def test_quote_of_a_chain_adds_the_prices_that_are_known() -> None:
    async with keeping(**selling(methods=(*METHODS, "CHAIN")), document=ledger()) as bench:
        step = {"method": "PURCHASE", "parameters": {"item": "seat", "principal_id": AGENT, "amount": DEAR}}
        later = {"method": "PURCHASE", "parameters": {**step["parameters"], "item": {"$from": "steps.0"}}}  # type: ignore[dict-item]
        body = {"method": "CHAIN", "parameters": {"steps": [step, step, later]}}
        told = (await bench.send("QUOTE", "/", body)).json
        assert told["result"]["estimated_cost"]["EUR"]["expected"] == 20, told


# What is continued.


async def left(bench: StatefulBench, **fields: Any) -> str:
    """Leave behind a purchase as a process does that dies while its seller is at work."""
    [record] = await bench.store.read(ListRecords("purchase"))
    kept = msgspec.json.decode(record.data)
    for name in ("delivered", "refused"):
        kept.pop(name, None)
    kept |= {"phase": "fulfil", **fields}
    data = msgspec.json.encode(kept).decode()
    await bench.store.do(PutRecord("pur-left", "purchase", AGENT, "pending", data, delay=60.0))
    return "pur-left"


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purchases, "_PAUSE", 0.0)


async def continued(bench: StatefulBench, purchase_id: str) -> Any:
    record = await bench.store.read(FindRecord(("purchase",), purchase_id))
    await bench.store.do(ChangeRecord(purchase_id, ("purchase",), ("pending",), "pending", data=record.data, delay=0.0))
    return await ended(bench, purchase_id)


async def holding(bench: StatefulBench) -> None:
    """Make a purchase whose money stays held, so that one that is left behind has money to settle."""
    assert (await buy(bench, confirm_immediately=False)).status == 200


@pytest.mark.usefixtures("at_once")
async def test_after_a_crash_the_seller_is_asked_again_with_the_same_key_until_it_answers() -> None:
    sale, seller = sale_of()
    async with keeping(**selling(sale), document=ledger()) as bench:
        await holding(bench)
        purchase_id = await left(bench)
        seller.failures = [RuntimeError("not yet"), RuntimeError("not yet")]
        assert (await continued(bench, purchase_id))["status"] == "settled"
        assert [key for key, _ in seller.acts] == ["pur-left/fulfil"] * 3
        assert await balances(bench) == (9000, 0, 1000)


@pytest.mark.usefixtures("at_once")
async def test_a_seller_that_fails_again_and_again_after_a_crash_ends_in_a_release() -> None:
    sale, seller = sale_of()
    async with keeping(**selling(sale), document=ledger()) as bench:
        await holding(bench)
        purchase_id = await left(bench)
        seller.failures = [RuntimeError("never")] * 20
        told = await continued(bench, purchase_id)
        assert (told["status"], len(seller.acts)) == ("failed", purchases._MOST_TRIES)
        assert await balances(bench) == (10_000, 0, 0)


async def test_a_seller_that_ends_its_process_each_time_is_given_up() -> None:
    sale, seller = sale_of()
    async with keeping(**selling(sale), document=ledger()) as bench:
        await holding(bench)
        [record] = await bench.store.read(ListRecords("purchase"))
        data = msgspec.json.encode({**msgspec.json.decode(record.data), "phase": "fulfil", "claims": -9}).decode()
        await bench.store.do(PutRecord("pur-left", "purchase", AGENT, "pending", data, delay=0.0))
        assert (await ended(bench, "pur-left"))["status"] == "failed"
        assert (seller.acts, await balances(bench)) == ([], (10_000, 0, 0))


async def test_a_purchase_ends_with_the_authority_of_its_buyer() -> None:
    known = Agent(agent_id=AGENT, name="ann", status="active", scopes=("payments:purchase",))
    sale, seller = sale_of()
    async with keeping(**selling(sale), document=ledger(), agents=(known,)) as bench:
        await holding(bench)
        [record] = await bench.store.read(ListRecords("purchase"))
        authority = {**msgspec.json.decode(record.data)["authority"], "expires": 1.0}
        told = await continued(bench, await left(bench, authority=authority))
        assert (told["status"], told["details"]["error"]["code"]) == ("failed", "authority-expired")
        assert (seller.acts, await balances(bench)) == ([], (10_000, 0, 0))


async def test_a_purchase_whose_agent_lost_the_scope_is_released() -> None:
    sale, seller = sale_of()
    async with keeping(**selling(sale), document=ledger()) as bench:
        await holding(bench)
        [record] = await bench.store.read(ListRecords("purchase"))
        authority = {**msgspec.json.decode(record.data)["authority"], "scopes": []}
        told = await continued(bench, await left(bench, authority=authority))
        assert (told["status"], told["details"]["error"]["code"], seller.acts) == ("failed", "scope-violation", [])


@pytest.mark.parametrize("cancelling", [False, True])
async def test_a_server_that_stops_leaves_its_purchases_to_the_next_one(tmp_path: Path, cancelling: bool) -> None:
    begun, stops, keys = asyncio.Event(), True, []

    class Slow:
        async def price(self) -> Price:
            return Price("10.00", "EUR")

        async def fulfil(self, sold: Sold) -> dict[str, str]:
            if not cancelling:
                await self.work(sold)
            return {"ticket": "T-1"}

        async def refund(self, sold: Sold) -> None:
            await self.work(sold)

        async def work(self, sold: Sold) -> None:
            keys.append(sold.key)
            begun.set()
            if stops:
                await asyncio.Event().wait()

    document = ledger(timeout=0.1)
    kept = open_store(str(tmp_path / "store.db"), role="sole")
    async with keeping(**selling(sale_of(Slow)[0]), document=document, store=kept) as bench:
        buying = asyncio.create_task(buy(bench))
        if cancelling:
            purchase_id = (await buying).json["result"]["purchase_id"]
            buying = asyncio.create_task(cancel(bench, purchase_id))
        await begun.wait()
        [record] = await bench.store.read(ListRecords("purchase"))
    buying.cancel()
    await asyncio.gather(buying, return_exceptions=True)
    stops = False
    kept = open_store(str(tmp_path / "store.db"), role="sole")
    async with keeping(**selling(sale_of(Slow)[0]), document=document, store=kept) as bench:
        told = await ended(bench, record.record_id)
        assert told["status"] == ("cancelled" if cancelling else "settled")
        assert await balances(bench) == ((10_000, 0, 0) if cancelling else (9000, 0, 1000))
    assert (len(keys), len(set(keys))) == (2, 1)


async def test_nobody_else_continues_a_purchase_while_its_seller_is_at_work(
    shared_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purchases.Purchases, "lease", 0.3)
    release, keys = asyncio.Event(), []

    class Slow:
        async def price(self) -> Price:
            return Price("10.00", "EUR")

        async def fulfil(self, sold: Sold) -> dict[str, str]:
            keys.append(sold.key)
            await release.wait()
            return {}

    sale, _ = sale_of(Slow)
    async with (
        keeping(**selling(sale), document=ledger(), store=open_store(shared_place)) as one,
        keeping(**selling(sale), document=ledger(), store=open_store(shared_place)) as two,
    ):
        buying = asyncio.create_task(buy(one))
        seen: set[float] = set()
        async with asyncio.timeout(20):
            while len(seen) < 6:  # the lease has been renewed for more than its length
                seen |= {record.due for record in await two.store.read(ListRecords("purchase"))}
                await asyncio.sleep(0.01)
        release.set()
        assert (await buying).status == 200
        assert len(keys) == 1


async def test_a_budget_of_one_call_is_enough_for_a_purchase() -> None:
    async with keeping(**selling(), document=ledger()) as bench:
        assert (await buy(bench, {"budget_limit": "calls=1, EUR=10"})).status == 200


async def test_a_hold_that_is_confirmed_while_it_expires_is_delivered_or_released() -> None:
    sale, seller = sale_of()
    async with keeping(**selling(sale), document=ledger(hold=0.01)) as bench:
        holds = [(await buy(bench, confirm_immediately=False)).json["result"]["hold_id"] for _ in range(8)]
        replies = await asyncio.gather(*(confirm(bench, hold_id) for hold_id in holds))
        states = [(await ended(bench, hold_id))["status"] for hold_id in holds]
        assert [reply.status == 200 for reply in replies] == [state == "settled" for state in states]
        paid = 1000 * len(seller.acts)
        assert (states.count("settled"), await balances(bench)) == (len(seller.acts), (10_000 - paid, 0, paid))


async def test_two_servers_deliver_once_and_charge_once(shared_place: str) -> None:
    account = AccountSettings(principal=AGENT, currency="EUR", opening="25.00")
    document = ServerDocument(extension_tables={"payments": PaymentSettings(accounts=(account,))})
    shops = [sale_of() for _ in range(2)]
    async with (
        keeping(**selling(shops[0][0]), document=document, store=open_store(shared_place)) as one,
        keeping(**selling(shops[1][0]), document=document, store=open_store(shared_place)) as two,
    ):
        replies = await asyncio.gather(
            *(buy(bench, {"idempotency_key": f"k-{number}"}) for number in range(4) for bench in (one, two))
        )
        again = [await buy(one, {"idempotency_key": f"k-{number}"}) for number in range(4)]
        assert sorted(reply.status for reply in again) == [200, 200, 409, 409]
        assert {reply.status for reply in replies} <= {200, 409}
        assert await balances(one) == (500, 0, 2000)
        assert len(shops[0][1].acts) + len(shops[1][1].acts) == 2


# A provider outside.


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[PaymentServer]:
    monkeypatch.setenv("BESPEAK_PAYMENTS_TOKEN", "secret")
    with payment_server() as running:
        yield running


def outside(provider: PaymentServer) -> ServerDocument:
    return ServerDocument(extension_tables={"payments": PaymentSettings(provider=provider.address, timeout=5.0)})


async def test_a_provider_outside_settles_what_was_delivered_and_releases_what_was_not(provider: PaymentServer) -> None:
    sale, seller = sale_of()
    async with keeping(**selling(sale), document=outside(provider)) as bench:
        receipt = (await buy(bench)).json["result"]
        assert (receipt["status"], receipt["delivered"]["ticket"]) == ("settled", "T-12A")
        seller.failures = [Refusal("taken", "Somebody was faster.")]
        assert (await buy(bench)).refusal == (422, "taken")
        assert [phase for phase, _ in provider.requests] == ["hold", "settle", "hold", "release"]
        provider.faults["hold"] = ["declined"]
        assert (await buy(bench)).refusal == (409, "insufficient-funds")
        assert len(seller.acts) == 2  # nothing is delivered before the money is held


async def test_a_refund_that_the_provider_declines_is_not_taken_back_twice(provider: PaymentServer) -> None:
    sale, seller = sale_of()
    async with keeping(**selling(sale), document=outside(provider)) as bench:
        purchase_id = (await buy(bench)).json["result"]["purchase_id"]
        provider.faults["refund"] = ["declined"]
        assert (await cancel(bench, purchase_id)).refusal == (422, "refund-impossible")
        assert (await cancel(bench, purchase_id)).json["result"]["refund"]["policy"] == "full"
        assert [key for key, _ in seller.acts] == [f"{purchase_id}/fulfil", f"{purchase_id}/return"]


# Declarations.


async def test_without_a_sale_the_method_is_published_as_not_implemented() -> None:
    async with keeping(methods=METHODS, document=ledger()) as bench:
        reply = await buy(bench)
        assert (reply.status, reply.error["missing"]) == (501, "a sale (declare one with @app.sale)")
        assert (await quote(bench)).refusal == (422, "invalid-parameters")


def test_a_sale_offers_the_methods_that_its_functions_take_part_in() -> None:
    class Final:
        async def price(self) -> Price:
            return Price("1", "EUR")

        async def fulfil(self) -> dict[str, str]:
            return {}

    assert set(sale_of(Final)[0].methods) == {"PURCHASE", "QUOTE"}
    assert set(sale_of()[0].methods) == {"PURCHASE", "QUOTE", "CANCEL"}


class _Priced:
    async def price(self, row: str) -> Price:
        return Price("1", "EUR")


class NoFulfil(_Priced):
    pass


class OtherParameters(_Priced):
    async def fulfil(self, seat: str) -> dict[str, str]:
        return {}


class OtherTypes(_Priced):
    async def fulfil(self, row: int) -> dict[str, str]:
        return {}


class WrongPrice:
    async def price(self, row: str) -> float:
        return 1.0

    async def fulfil(self, row: str) -> dict[str, str]:
        return {}


class WrongRefund(OtherParameters):
    async def fulfil(self, row: str) -> dict[str, str]:  # type: ignore[override] # on purpose
        return {}

    async def refund(self, row: str) -> int:
        return 1


class SoldTooEarly:
    async def price(self, sold: Sold) -> Price:
        return sold.price

    async def fulfil(self, sold: Sold) -> dict[str, str]:
        return {}


class Undeclared(_Priced):
    async def fulfil(self, row: str) -> dict[str, str]:
        raise Refusal("taken", "It is taken.")


class NeedsArguments(WrongRefund):
    def __init__(self, airline: str) -> None:
        self.airline = airline


class Yields(_Priced):
    async def fulfil(self, row: str) -> Any:
        yield {}


@rows(
    "seller, message",
    (NoFulfil, "fulfil is missing"),
    (print, "decorate a class with the methods price and fulfil"),
    (OtherParameters, "fulfil\\(\\) must take the parameters of price\\(\\).*row, seat differ"),
    (OtherTypes, "row differ"),
    (WrongPrice, "price\\(\\) must be annotated with -> Price; got float"),
    (WrongRefund, "refund\\(\\) must be annotated with -> Price or -> None; got int"),
    (SoldTooEarly, "must not take 'sold'"),
    (Undeclared, "refuses with 'taken', which is not a declared error"),
    (NeedsArguments, "without arguments"),
    (Yields, "it yields"),
)
def test_a_sale_that_cannot_work_is_refused_where_it_is_declared(seller: Any, message: str) -> None:
    app = App("Shop", server_id="test.example", operator="Acme", contact="ops@test.example")
    with pytest.raises(ContractError, match=message) as caught:
        app.sale("seat")(seller)
    assert seller is print or "test_sales.py:" in str(caught.value)
    assert app.service().participants == ()


def test_two_sales_do_not_have_the_same_name() -> None:
    app = App("Shop", server_id="test.example", operator="Acme", contact="ops@test.example")
    app.sale("seat")(Seat)
    with pytest.raises(ContractError, match="another sale has its name"):
        app.sale("seat")(Seat)
