"""ALERT goes on to the next recipient at each deadline, unless somebody has acknowledged it."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest
from tests.messaging import ANN, BOB, CAT, DAN, METHODS, contents, inbox, refusal, sent, soon, subscribe, until_received
from tests.stateful import StatefulBench, keeping

from bespeak.contract.delivery import DeliverySettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.state.store.opening import open_store

pytestmark = pytest.mark.anyio

HOOK = "http://127.0.0.1:9/hook"
DELIVERING = ServerDocument(delivery=DeliverySettings(recipients=("127.0.0.1",), allow=("127.0.0.1:9",)))


def body(**fields: Any) -> dict[str, Any]:
    return {"recipient": BOB, "message": "disk full", "severity": "critical", **fields}


async def acknowledge(bench: StatefulBench, target_id: str, agent: str = BOB) -> dict[str, Any]:
    return await sent(bench, "CONFIRM", {"target_id": target_id, "status": "accepted"}, agent)


async def state_of(bench: StatefulBench, alert_id: str) -> str:
    state: str = (await sent(bench, "CHECK", {"target": alert_id}))["status"]
    return state


@pytest.mark.requirement("METHODS-7.1-2", "METHODS-7.1-3", "METHODS-7.1-4")
async def test_an_alert_is_received_at_once_and_acknowledged_by_its_id(shared_place: str) -> None:
    async with keeping(methods=METHODS, store=open_store(shared_place)) as bench:
        receipt = await sent(bench, "ALERT", body(acknowledge_by=soon(600), escalation_path=[CAT]))
        assert (receipt["status"], receipt["recipients"], receipt["escalates_to"]) == ("sent", 1, [CAT])
        [message] = await inbox(bench)
        assert message["content"] == {"severity": "critical", "message": "disk full"}
        assert (message["kind"], message["origin_id"]) == ("alert", receipt["alert_id"])
        assert (await inbox(bench, CAT), await state_of(bench, receipt["alert_id"])) == ([], "sent")
        await acknowledge(bench, receipt["alert_id"])
        assert await state_of(bench, receipt["alert_id"]) == "acknowledged"
        [told] = await inbox(bench, ANN)
        assert (told["kind"], told["content"]["origin_id"]) == ("confirmation", receipt["alert_id"])


@pytest.mark.requirement("METHODS-7.1-2", "METHODS-7.1-5")
async def test_it_walks_the_path_to_its_end_after_a_restart_too(shared_place: str) -> None:
    async with keeping(methods=METHODS, store=open_store(shared_place)) as bench:
        receipt = await sent(bench, "ALERT", body(acknowledge_by=soon(0.2), escalation_path=[CAT, DAN]))
    async with keeping(methods=METHODS, store=open_store(shared_place)) as bench:
        [told] = await until_received(bench, 1, ANN)
        assert (told["kind"], told["origin_id"]) == ("unacknowledged", receipt["alert_id"])
        for agent in (CAT, DAN):
            [message] = await inbox(bench, agent)
            assert (message["kind"], message["content"]["message"]) == ("alert", "disk full")
        await acknowledge(bench, receipt["alert_id"], DAN)


@pytest.mark.requirement("METHODS-7.1-4")
async def test_an_acknowledged_alert_goes_no_further(shared_place: str) -> None:
    async with keeping(methods=METHODS, store=open_store(shared_place)) as bench:
        await subscribe(bench, DAN, channel="on-call")
        first = await sent(bench, "ALERT", body(acknowledge_by=soon(0.4), escalation_path=[CAT, "on-call"]))
        await acknowledge(bench, first["alert_id"])
        second = await sent(bench, "ALERT", body(acknowledge_by=soon(0.4), escalation_path=["on-call"]))
        [message] = await until_received(bench, 1, DAN)
        assert message["origin_id"] == second["alert_id"]
        assert await inbox(bench, CAT) == []


async def test_two_processes_alert_a_group_once(shared_place: str) -> None:
    async with (
        keeping(methods=METHODS, store=open_store(shared_place)) as bench,
        keeping(methods=METHODS, store=open_store(shared_place)) as other,
    ):
        await subscribe(bench, DAN, CAT, channel="on-call")
        for _ in range(5):
            await sent(bench, "ALERT", body(acknowledge_by=soon(0.2), escalation_path="on-call"))
        await until_received(other, 5, DAN)
        await until_received(bench, 5, CAT)
        assert (len(await inbox(bench, DAN)), len(await inbox(other, CAT))) == (5, 5)


async def test_an_address_on_the_path_is_withdrawn_with_the_alert() -> None:
    async with keeping(methods=METHODS, document=DELIVERING) as bench:
        first = await sent(bench, "ALERT", body(acknowledge_by=soon(600), escalation_path=HOOK))
        assert any(HOOK in row for row in await contents(bench))
        await acknowledge(bench, first["alert_id"])
        assert not any(HOOK in row for row in await contents(bench))
        now = await sent(bench, "ALERT", body(recipient=[HOOK, BOB]))
        [row] = [row for row in await contents(bench) if HOOK in row]
        posting = msgspec.json.decode(next(cell for cell in row if str(cell).startswith("{")))
        assert posting["posting_id"].startswith(now["alert_id"])


async def test_the_author_cancels_an_alert_and_the_recipients_are_told() -> None:
    async with keeping(methods=METHODS) as bench:
        receipt = await sent(bench, "ALERT", body(acknowledge_by=soon(0.3), escalation_path=[CAT]))
        assert (await bench.send("CANCEL", "/", {"target_id": receipt["alert_id"]}, agent=BOB)).status == 404
        cancel = {"target_id": receipt["alert_id"], "notify_parties": True, "reason": "false alarm"}
        assert (await sent(bench, "CANCEL", cancel))["notified"] == [BOB]
        [_, told] = await inbox(bench)
        assert (told["kind"], told["content"]["reason"]) == ("cancellation", "false alarm")
        later = await sent(bench, "ALERT", body(acknowledge_by=soon(0.4), escalation_path=[CAT]))
        [message] = await until_received(bench, 1, CAT)
        assert message["origin_id"] == later["alert_id"]


@pytest.mark.requirement("METHODS-7.1-6")
async def test_bad_input_is_refused_and_changes_nothing() -> None:
    cases = {
        "unknown": (body(recipient=["nobody"]), (404, "unknown-recipient")),
        "unknown later": (body(escalation_path=[CAT, "nobody"]), (404, "unknown-recipient")),
        "past": (body(acknowledge_by="2001-01-01T00:00:00Z"), (400, "invalid-acknowledge-by")),
        "no time": (body(acknowledge_by="now"), (422, "invalid-acknowledge-by")),
        "large": (body(message="x" * 70_000), (413, "message-too-large")),
        "long path": (body(escalation_path=[CAT] * 17), (422, "input-validation-failed")),
    }
    async with keeping(methods=METHODS) as bench:
        for name, (given, expected) in cases.items():
            assert await refusal(bench, "ALERT", given) == expected, name


async def test_nobody_acknowledges_the_alert_of_another() -> None:
    async with keeping(methods=METHODS) as bench:
        receipt = await sent(bench, "ALERT", body(acknowledge_by=soon(600), escalation_path=[CAT]))
        [message] = await inbox(bench)
        for agent in (ANN, CAT, DAN):
            for target_id in (receipt["alert_id"], message["message_id"]):
                confirm = {"target_id": target_id, "status": "accepted"}
                assert await refusal(bench, "CONFIRM", confirm, agent) == (404, "target-not-found")
        assert await state_of(bench, receipt["alert_id"]) == "sent"


async def test_a_path_without_a_deadline_has_one_hour() -> None:
    async with keeping(methods=METHODS) as bench:
        before = time.time()
        receipt = await sent(bench, "ALERT", body(escalation_path=[CAT]))
        assert receipt["acknowledge_by"] > soon(before + 3000 - time.time())
        assert "acknowledge_by" not in await sent(bench, "ALERT", body())
