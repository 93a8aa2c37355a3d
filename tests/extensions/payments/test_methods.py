"""PURCHASE spends a principal's money only with scope, principal, budget and merchant in order, and exactly once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.cases import rows
from tests.payments import EUR, METHODS, buy, ledger, merchant_headers, selling
from tests.service import AGENT, echo, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.agent import Agent
from bespeak.contract.policy import Policies
from bespeak.extensions.payments.store import CheckLedger, ListAccounts, account_of
from bespeak.protocol.exchange.header_values import encode64
from bespeak.state.audit.record import payload_of
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.store.commands.audit import ScanAudit
from bespeak.state.store.commands.cases import ListCases
from bespeak.state.store.commands.records import ListRecords

pytestmark = pytest.mark.anyio
dear, dollar = {"value": "100.01", "currency": "EUR"}, {"value": "1", "currency": "USD"}


async def balances(bench: StatefulBench) -> dict[str, int]:
    assert await bench.store.read(CheckLedger()) == []
    found = {one.account: one.balance for one in await bench.store.read(ListAccounts())}
    return {"own": found[account_of(AGENT)], "held": found.get("held", 0), "sales": found.get("sales", 0)}


@pytest.mark.requirement("METHODS-5.7-8")
async def test_a_purchase_is_paid_and_recorded() -> None:
    async with keeping(**selling(), document=ledger()) as bench:
        receipt = (await buy(bench)).json["result"]
        assert (receipt["status"], receipt["amount"], receipt["principal_id"]) == ("settled", EUR, AGENT)
        assert await balances(bench) == {"own": 9000, "held": 0, "sales": 1000}
        [record] = await bench.store.read(ListRecords("purchase"))
        assert (record.record_id, record.owner, record.state) == (receipt["purchase_id"], AGENT, "settled")


@pytest.mark.requirement("METHODS-5.7-2")
async def test_the_ledger_is_its_only_payment_method() -> None:
    async with keeping(**selling(), document=ledger()) as bench:
        assert (await buy(bench, payment_method="ledger")).json["result"]["status"] == "settled"
        refused = await buy(bench, payment_method="card-unknown")
        assert refused.refusal == (403, "payment-refused")
        assert (refused.error["field"], refused.error["payment_methods"]) == ("/payment_method", ["ledger"])


@pytest.mark.requirement("METHODS-5.7-3")
async def test_without_immediate_confirmation_the_money_is_held() -> None:
    async with keeping(**selling(), document=ledger()) as bench:
        receipt = (await buy(bench, confirm_immediately=False)).json["result"]
        assert (receipt["status"], receipt["hold_id"]) == ("held", receipt["purchase_id"])
        assert receipt["expires_at"]
        assert await balances(bench) == {"own": 9000, "held": 1000, "sales": 0}


@pytest.mark.requirement(
    "METHODS-5.7-4",
    "METHODS-5.7-5",
    "METHODS-10.1-2",
    "CORE-2.3-11",
    "CORE-4.13-1",
    "CORE-6.1-10",
    "CORE-10.1-15",
    "METHODS-5.7-6",
    "CORE-4.13-6",
)
@rows(
    "headers, fields, status, code",
    ({"authority_scope": "payments:refund"}, {}, 455, "scope-violation"),
    ({}, {"principal_id": "somebody-else"}, 403, "payment-refused"),
    ({}, {"payment_method": "card-unknown"}, 403, "payment-refused"),
    ({"budget_limit": "EUR=9.99"}, {}, 456, "budget-exceeded"),
    ({"budget_limit": "USD=1000"}, {}, 456, "budget-exceeded"),
    ({"budget_limit": "EUR=-1"}, {}, 400, "invalid-budget-limit"),
    ({"merchant_id": None}, {}, 458, "counterparty-unverified"),
    ({"merchant_id": "other.example"}, {}, 458, "counterparty-unverified"),
    ({"merchant_manifest_fingerprint": None}, {}, 458, "counterparty-unverified"),
    ({"merchant_manifest_fingerprint": "0" * 64}, {}, 458, "counterparty-unverified"),
    ({}, {"amount": dear, "item": {"sale": "seat", "input": {"value": "100.01"}}}, 409, "insufficient-funds"),
    (
        {},
        {"amount": dollar, "item": {"sale": "seat", "input": {"currency": "USD", "value": "1"}}},
        403,
        "payment-refused",
    ),
    ({}, {"amount": dollar}, 422, "invalid-amount"),
    ({}, {"amount": {"value": "9.99", "currency": "EUR"}}, 409, "price-changed"),
    ({}, {"item": "lamp"}, 404, "unknown-item"),
    ({}, {"item": {"sale": "seat", "input": {"row": 12}}}, 422, "invalid-item"),
    ({}, {"item": {"sale": "seat", "input": {"colour": "red"}}}, 422, "invalid-item"),
    ({}, {"item": {"sale": "seat", "row": "12A"}}, 422, "input-validation-failed"),
    ({}, {"item": {"sale": "seat", "input": {"row": "99Z"}}}, 422, "no_such_row"),
    ({}, {"item": {"sale": "seat", "input": {"value": "0"}}}, 500, "server-error"),
    ({}, {"item": {"sale": "seat", "input": {"value": "ten"}}}, 500, "server-error"),
    ({}, {"item": {"sale": "seat", "input": {"currency": "CHF"}}}, 500, "server-error"),
    ({}, {"amount": {"value": "1", "currency": "CHF"}}, 422, "invalid-amount"),
    ({}, {"amount": {"value": "1.005", "currency": "EUR"}}, 422, "invalid-amount"),
    ({}, {"amount": {"value": 0, "currency": "EUR"}}, 422, "invalid-amount"),
    ({}, {"amount": {"value": "0.00", "currency": "EUR"}}, 422, "invalid-amount"),
    ({}, {"amount": {"value": 10**15, "currency": "EUR"}}, 422, "invalid-amount"),
    ({}, {"amount": {"value": 1e30, "currency": "EUR"}}, 422, "input-validation-failed"),
    ({}, {"amount": {"value": -1, "currency": "EUR"}}, 422, "input-validation-failed"),
    ({}, {"amount": {"value": 0.1, "currency": "EUR"}}, 422, "input-validation-failed"),
    ({}, {"amount": {"value": "1", "currency": "eur"}}, 422, "input-validation-failed"),
    ({}, {"principal_id": "a\0b"}, 422, "input-validation-failed"),
    ({}, {"item": {"sale": "seat", "input": {"row": "x" * 20_000}}}, 413, "item-too-large"),
)
async def test_what_is_not_in_order_changes_nothing(
    headers: dict[str, str | None], fields: dict[str, Any], status: int, code: str
) -> None:
    async with keeping(**selling(), document=ledger()) as bench:
        reply = await buy(bench, headers, **fields)
        assert (reply.status, reply.error["code"]) == (status, code), reply.json
        assert await balances(bench) == {"own": 10_000, "held": 0, "sales": 0}
        assert await bench.store.read(ListRecords("purchase")) == []


async def test_amounts_are_json_numbers_and_budgets_cover_them_or_name_no_money() -> None:
    async with keeping(**selling(), document=ledger()) as bench:
        body = b'{"item": "x", "principal_id": "p", "amount": {"value": NaN, "currency": "EUR"}}'
        assert (await bench.send("PURCHASE", "/", body, **merchant_headers(bench))).status == 400
        for budget in ("EUR=10.00", "tokens=5"):
            assert (await buy(bench, {"budget_limit": budget})).status == 200


@pytest.mark.requirement("METHODS-10.1-1")
async def test_purchase_is_refused_by_scope_principal_merchant_item_and_budget_in_this_order() -> None:
    wrong: list[tuple[dict[str, str | None], dict[str, Any], int]] = [
        ({"authority_scope": None}, {}, 455),
        ({}, {"principal_id": "nobody"}, 403),
        ({"merchant_id": None}, {}, 458),
        ({}, {"item": "lamp"}, 404),
        ({"budget_limit": "EUR=1"}, {}, 456),
    ]
    async with keeping(**selling(), document=ledger()) as bench:
        for index, (_, _, status) in enumerate(wrong):
            headers: dict[str, str | None] = {}
            fields: dict[str, Any] = {}
            for more, others, _ in wrong[index:]:
                headers |= more
                fields |= others
            assert (await buy(bench, headers, **fields)).status == status


async def test_an_agent_buys_for_its_principal_but_for_no_other() -> None:
    agent = Agent(agent_id=AGENT, name="buyer", status="active", principal_id="acme", scopes=("payments:purchase",))
    async with keeping(**selling(), document=ledger(), agents=(agent,)) as bench:
        # The principal is known, and only has no account here.
        assert (await buy(bench, principal_id="acme")).error["message"].startswith("The principal has no account")
        assert (await buy(bench, principal_id="acme2")).error["field"] == "/principal_id"


async def test_purchases_at_once_do_not_overdraw() -> None:
    async with keeping(**selling(), document=ledger("50.00")) as bench:
        replies = await asyncio.gather(*(buy(bench) for _ in range(12)))
        assert sorted(reply.status for reply in replies) == [200] * 5 + [409] * 7
        assert await balances(bench) == {"own": 0, "held": 0, "sales": 5000}


async def test_a_repeated_key_pays_once() -> None:
    async with keeping(**selling(), document=ledger()) as bench:
        first, again = [await buy(bench, {"idempotency_key": "k-1"}) for _ in range(2)]
        assert first.json == again.json
        assert (await balances(bench))["sales"] == 1000


async def test_steps_of_a_chain_share_one_budget() -> None:
    async with keeping(**selling(methods=(*METHODS, "CHAIN")), document=ledger()) as bench:
        step = {"method": "PURCHASE", "parameters": {"item": "seat", "principal_id": AGENT, "amount": EUR}}
        headers = {**merchant_headers(bench), "budget_limit": "EUR=15"}
        reply = await bench.send("CHAIN", "/", {"steps": [step, step]}, **headers)
        steps = reply.json["result"]["steps"] if "result" in reply.json else reply.error["steps"]
        assert [one.get("code", 200) for one in steps] == [200, 456]
        assert (await balances(bench))["sales"] == 1000


async def test_the_budget_of_a_chain_counts_what_was_spent_before_it_waited() -> None:
    async def nap(_: dict[str, Any]) -> dict[str, Any]:
        begun.set()
        await release.wait()
        return {}

    begun, release = asyncio.Event(), asyncio.Event()
    porter = make_endpoint("AWAIT", "/porter", nap)
    async with keeping(porter, **selling(methods=(*METHODS, "CHAIN", "PAUSE")), document=ledger()) as bench:
        step = {"method": "PURCHASE", "parameters": {"item": "seat", "principal_id": AGENT, "amount": EUR}}
        headers = {**merchant_headers(bench), "budget_limit": "EUR=15"}
        steps = [step, {"method": "AWAIT", "path": "/porter"}, step]
        chain = asyncio.create_task(bench.send("CHAIN", "/", {"steps": steps}, **headers))
        await begun.wait()
        [workflow_id] = bench.bench.server.part("workflows")._driving
        await bench.send("PAUSE", "/", {"workflow_id": workflow_id})
        release.set()
        assert (await chain).json["result"]["status"] == "paused"
        await bench.send("RESUME", "/", {"workflow_id": workflow_id})
        async with asyncio.timeout(10):
            while not (found := await bench.bench.server.part("workflows").find(workflow_id)).has_ended:
                await asyncio.sleep(0.01)
        assert [row.code for row in found.rows] == [200, 200, 456]
        assert (await balances(bench))["sales"] == 1000


@pytest.mark.requirement("CORE-10.3-5")
async def test_the_audit_record_names_the_merchant_and_the_intent() -> None:
    document = replace(ledger(), audit=AuditSettings(records="all"))
    intent = ".".join(encode64(part).decode() for part in (b'{"alg":"EdDSA"}', b'{"jti":"intent-7"}', b"signature"))
    async with keeping(**selling(), document=document) as bench:
        for text in (intent, "not a token", "..", intent.replace(".", "")):
            assert (await buy(bench, {"intent_assertion": text})).status == 200
        payloads = [payload_of(row[-1]) or {} for row in await bench.store.read(ScanAudit())]
        recorded, *others = (payload["extra"]["input"] for payload in payloads if payload.get("path") == "/")
        assert (recorded["merchant_id"], recorded["amount"], len(recorded["merchant_fingerprint"])) == (
            *("test.example", EUR, 64),
        )
        assert recorded["intent_assertion_jti"] == "intent-7"
        assert not any("intent_assertion_jti" in other for other in others)


async def test_another_party_confirms_a_purchase_that_is_in_order() -> None:
    policies = Policies(scope_required_for_invocation=False, confirm_irreversible=True)
    async with keeping(**selling(), document=ledger(), policies=policies) as bench:
        assert (await buy(bench, {"budget_limit": "USD=100"})).status == 456
        assert (await buy(bench, item="lamp")).status == 404
        assert await bench.store.read(ListCases()) == []
        asked = await buy(bench)
        assert (asked.status, asked.error["type"]) == (262, "confirmation-required")
        assert (await balances(bench))["own"] == 10_000
        case_id = asked.error["confirmation_id"]
        decision = {"target_id": case_id, "status": "accepted"}
        await bench.send("CONFIRM", "/", decision, agent="b" * 64, authority_scope="confirmation:decide")
        paid, again = [await buy(bench, {"confirmation_id": case_id}) for _ in range(2)]
        assert (paid.status, again.status) == (200, 409)
        assert (await balances(bench))["sales"] == 1000


async def test_an_endpoint_of_the_operator_has_its_own_rules() -> None:
    own = make_endpoint("PURCHASE", "/seat", echo)
    async with keeping(own, **selling(), document=ledger()) as bench:
        assert (await bench.send("PURCHASE", "/seat")).status == 200


PAYS = {"authority_scope": "payments:purchase"}


async def hold_balances(bench: StatefulBench) -> tuple[int, int, int]:
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
    async with keeping(**selling(), document=ledger()) as bench:
        hold_id = await held(bench)
        reply = await confirm(bench, hold_id)
        assert (reply.status, reply.json["result"]["purchase"]["status"]) == (200, "settled")
        assert await hold_balances(bench) == (9000, 0, 1000)
        assert (await confirm(bench, hold_id)).refusal == (409, "already-decided")
        assert await hold_balances(bench) == (9000, 0, 1000)


@pytest.mark.requirement("METHODS-5.5-8")
async def test_a_rejected_or_cancelled_hold_frees_the_money() -> None:
    async with keeping(**selling(), document=ledger()) as bench:
        hold_id = await held(bench)
        assert (await confirm(bench, hold_id, "rejected")).status == 200
        assert await hold_balances(bench) == (10_000, 0, 0)
        assert (await confirm(bench, hold_id)).status == 409
        hold_id = await held(bench)
        receipt = (await cancel(bench, hold_id)).json["result"]
        assert (receipt["status"], receipt["refund"]["policy"]) == ("cancelled", "release")
        assert await hold_balances(bench) == (10_000, 0, 0)
        assert (await cancel(bench, hold_id)).error["code"] == "already-cancelled"
        assert (await confirm(bench, hold_id)).status == 409


async def test_settling_needs_the_scope_the_budget_and_the_buyer() -> None:
    async with keeping(**selling(), document=ledger()) as bench:
        hold_id = await held(bench)
        assert (await confirm(bench, hold_id, authority_scope="news:read")).status == 455
        assert (await confirm(bench, hold_id, budget_limit="EUR=9")).status == 456
        assert (await confirm(bench, hold_id, "deferred")).status == 422
        theirs = await bench.send("CONFIRM", "/", {"target_id": hold_id, "status": "accepted"}, agent="b" * 64, **PAYS)
        assert (theirs.status, (await confirm(bench, "pur-0")).status) == (404, 404)
        assert await hold_balances(bench) == (9000, 1000, 0)


@pytest.mark.requirement("METHODS-5.5-3", "METHODS-5.5-7")
@rows(
    "fields, policy, own",
    ({"refund_policy": "full"}, "full", 10_000),
    ({"refund_policy": "none"}, "none", 9000),
    ({"refund_policy": "partial", "refund_amount": {"value": "2.50", "currency": "EUR"}}, "partial", 9250),
)
async def test_a_settled_purchase_is_refunded_as_asked(fields: dict[str, Any], policy: str, own: int) -> None:
    async with keeping(**selling(), document=ledger()) as bench:
        purchase_id = await bought(bench)
        receipt = (await cancel(bench, purchase_id, **fields)).json["result"]
        assert (receipt["status"], receipt["refund"]["policy"]) == ("cancelled", policy)
        assert await hold_balances(bench) == (own, 0, 10_000 - own)
        assert (await cancel(bench, purchase_id, **fields)).error["code"] == "already-cancelled"
        assert await hold_balances(bench) == (own, 0, 10_000 - own)


@rows(
    "fields, code",
    ({}, "not-cancellable"),
    ({"refund_policy": "full", "refund_amount": {"value": "1", "currency": "EUR"}}, "refund-impossible"),
    ({"refund_policy": "partial", "refund_amount": {"value": "10.01", "currency": "EUR"}}, "refund-impossible"),
    ({"refund_policy": "partial", "refund_amount": {"value": "0", "currency": "EUR"}}, "refund-impossible"),
    ({"refund_policy": "partial", "refund_amount": {"value": "1", "currency": "USD"}}, "refund-impossible"),
)
async def test_a_refund_that_is_not_possible_changes_nothing(fields: dict[str, Any], code: str) -> None:
    async with keeping(**selling(), document=ledger()) as bench:
        reply = await cancel(bench, await bought(bench), **fields)
        assert (reply.status, reply.error["code"]) == (409 if code == "not-cancellable" else 422, code)
        assert await hold_balances(bench) == (9000, 0, 1000)
