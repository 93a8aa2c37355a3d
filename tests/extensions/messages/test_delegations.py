"""DELEGATE hands over: the delegate finds the task in its inbox, answers it there, and the delegator learns the end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from joserfc.jwk import OKPKey
from tests.agent.discovery.web import always, serving
from tests.cases import rows
from tests.extensions.messages.parts import letter_of
from tests.messaging import inbox, until_received
from tests.people import reachable
from tests.service import echo, make_endpoint
from tests.stateful import StatefulBench, audited_backend, keeping

from bespeak.contract.agent import Agent
from bespeak.contract.policy import Policies
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.messages.settings import DeliverySettings
from bespeak.protocol.exchange.instant import write_instant
from bespeak.state.store.settings import open_store

anyio_backend = audited_backend
pytestmark = pytest.mark.anyio

ANN, BOB, CAT = "1" * 64, "2" * 64, "3" * 64
METHODS = ("CHECK", "CANCEL", "REPLY", "ALERT")
AGENTS = (
    Agent(agent_id=ANN, name="ann", scopes=("booking:*", "calendar:read")),
    Agent(agent_id=BOB, name="bob", scopes=("mail:send",)),
    Agent(agent_id=CAT, name="cat", scopes=("mail:send",)),
)
TASK = {"method": "BOOK", "path": "/room"}


@asynccontextmanager
async def served(key: OKPKey | None = None, **fields: Any) -> AsyncIterator[StatefulBench]:
    book = make_endpoint("BOOK", "/room", echo, scopes=("booking:room",), impact="reversible")
    made = {"methods": METHODS, "agents": AGENTS, "policies": Policies(), **fields}
    async with keeping(book, signing_key=key or OKPKey.generate_key("Ed25519"), **made) as bench:
        yield bench


async def delegated(bench: StatefulBench, target: str = BOB, *, task_id: str = "", **more: Any) -> dict[str, Any]:
    body = {"target_agent_id": target, "task": TASK, "authority_scope": "booking:room", "delegation_token": "issue"}
    headers = {"task_id": task_id} if task_id else {}
    reply = await bench.send("DELEGATE", "/", {**body, **more}, agent=ANN, **headers)
    assert reply.status == 200, reply.json
    result: dict[str, Any] = reply.json["result"]
    return result


async def check(bench: StatefulBench, target: str, agent: str = ANN) -> tuple[int, dict[str, Any]]:
    reply = await bench.send("CHECK", "/", {"target": target}, agent=agent)
    return reply.status, reply.json["result"] if reply.status == 200 else reply.error


async def confirm(bench: StatefulBench, target: str, status: str, agent: str = BOB) -> int:
    given = {"target_id": target, "status": status}
    return (await bench.send("CONFIRM", "/", given, agent=agent)).status


async def answer(bench: StatefulBench, message: dict[str, Any], content: Any, agent: str = BOB) -> int:
    given = {"in_reply_to": message["message_id"], "content": content}
    return (await bench.send("REPLY", "/", given, agent=agent)).status


async def book(bench: StatefulBench, chain: str) -> int:
    return (await bench.send("BOOK", "/room", agent=BOB, delegation_chain=chain)).status


@pytest.mark.requirement("CORE-4.8-9")
async def test_the_delegate_finds_the_task_accepts_it_and_its_result_reaches_the_delegator() -> None:
    async with served() as bench:
        result = await delegated(bench, task_id="trip-1")
        assert result["status"] == "offered"
        [offer] = await inbox(bench, BOB)
        assert (offer["kind"], offer["sender"], offer["content"]["task"]) == ("delegation", ANN, TASK)
        assert await book(bench, offer["content"]["delegation_chain"]) == 200
        for name in ("trip-1", result["delegation_id"]):
            assert (await check(bench, name))[1]["status"] == "offered"
        assert await confirm(bench, offer["message_id"], "accepted") == 200
        assert (await check(bench, "trip-1"))[1]["status"] == "accepted"
        assert await answer(bench, offer, {"reservation": 7}) == 200
        number, found = await check(bench, "trip-1")
        assert (number, found["status"], found["details"]["result"]) == (200, "done", {"reservation": 7})
        kinds = {message["kind"]: message["content"] for message in await inbox(bench, ANN)}
        assert kinds["reply"] == {"reservation": 7}
        assert kinds["confirmation"]["status"] == "accepted"
        assert await answer(bench, offer, "again") == 400


async def test_a_delegation_that_has_ended_grants_nothing_any_more() -> None:
    async with served() as bench:
        chain = (await delegated(bench))["delegation_chain"]
        [offer] = await inbox(bench, BOB)
        assert await answer(bench, offer, "done") == 200
        async with asyncio.timeout(20):
            while (number := await book(bench, chain)) == 200:
                await asyncio.sleep(0.005)
        assert number == 551


async def test_a_delegate_declines_once_and_the_delegator_is_told() -> None:
    async with served() as bench:
        result = await delegated(bench)
        [offer] = await inbox(bench, BOB)
        assert await confirm(bench, offer["message_id"], "rejected") == 200
        assert await confirm(bench, offer["message_id"], "accepted") == 409
        assert (await check(bench, result["delegation_id"]))[1]["status"] == "declined"
        [told] = await inbox(bench, ANN)
        assert (told["kind"], told["content"]["status"]) == ("confirmation", "rejected")


@pytest.mark.requirement("CORE-4.8-5")
async def test_a_delegate_that_fails_ends_in_550_with_its_error() -> None:
    async with served() as bench:
        result = await delegated(bench)
        [offer] = await inbox(bench, BOB)
        assert await answer(bench, offer, {"error": {"code": "full", "message": "No room."}}) == 200
        number, error = await check(bench, result["delegation_id"])
        assert (number, error["code"]) == (550, "delegation-failed")
        assert error["delegation"]["error"] == {"code": "full", "message": "No room."}


@pytest.mark.requirement("CORE-4.8-4", "CORE-4.8-5")
async def test_a_missed_deadline_ends_in_550_and_the_delegator_is_told() -> None:
    async with served() as bench:
        result = await delegated(bench, task_id="late", deadline=write_instant(time.time() + 2.2))
        [offer] = await inbox(bench, BOB)
        [told] = await until_received(bench, 1, ANN)
        assert (told["content"]["status"], told["content"]["error"]["status"]) == ("expired", 550)
        assert (await check(bench, "late"))[0] == 550
        assert await confirm(bench, offer["message_id"], "accepted") in (404, 409)
        assert await answer(bench, offer, "late") in (400, 404)
        assert await book(bench, result["delegation_chain"]) == 551


@rows("named_by", "task", "delegation")
async def test_the_delegator_cancels_and_the_token_is_void_at_once(named_by: str) -> None:
    async with served() as bench:
        result = await delegated(bench, task_id="trip-1")
        [offer] = await inbox(bench, BOB)
        assert await book(bench, result["delegation_chain"]) == 200
        target = "trip-1" if named_by == "task" else result["delegation_id"]
        stranger = await bench.send("CANCEL", "/", {"target_id": target}, agent=CAT)
        assert stranger.status == 404
        reply = await bench.send("CANCEL", "/", {"target_id": target}, agent=ANN)
        assert (reply.status, reply.json["result"]["status"]) == (200, "cancelled")
        assert await book(bench, result["delegation_chain"]) == 551
        assert [one["content"].get("status") for one in await inbox(bench, BOB)] == ["offered", "cancelled"]
        assert await confirm(bench, offer["message_id"], "accepted") == 409
        assert (await bench.send("CANCEL", "/", {"target_id": target}, agent=ANN)).status == 409


async def test_another_agent_knows_nothing_of_a_delegation() -> None:
    async with served() as bench:
        result = await delegated(bench, task_id="trip-1")
        [offer] = await inbox(bench, BOB)
        for target in ("trip-1", result["delegation_id"]):
            assert (await check(bench, target, CAT))[0] == 404
        assert await confirm(bench, offer["message_id"], "accepted", CAT) == 404
        assert await answer(bench, offer, "mine", CAT) == 404
        assert (await check(bench, "trip-1"))[1]["status"] == "offered"


async def test_two_delegations_with_one_task_id_must_be_named_by_their_ids() -> None:
    async with served() as bench:
        first = await delegated(bench, task_id="trip-1")
        await delegated(bench, CAT, task_id="trip-1")
        assert (await check(bench, "trip-1"))[0] == 409
        assert (await check(bench, first["delegation_id"]))[0] == 200


@pytest.mark.requirement("CORE-4.8-6")
async def test_a_callback_is_told_the_end_with_the_result() -> None:
    document = ServerDocument(
        extension_tables={"delivery": DeliverySettings(allow=("127.0.0.1",), recipients=("127.0.0.1",))}
    )
    async with serving(always(204), tls=False) as web, served(document=document) as bench:
        result = await delegated(bench, callback=f"http://127.0.0.1:{web.port}/hook")
        [offer] = await inbox(bench, BOB)
        await answer(bench, offer, {"reservation": 7})
        async with asyncio.timeout(20):
            while len(web.asked) < 2:  # the first asks whether it receives
                await asyncio.sleep(0.005)
        told = letter_of(web.asked[1])
    assert told["content"] == {
        "delegation_id": result["delegation_id"],
        "delegate": BOB,
        "status": "done",
        "result": {"reservation": 7},
    }


async def test_a_callback_that_does_not_agree_is_refused() -> None:
    async with served() as bench:
        body = {"target_agent_id": BOB, "task": "x", "authority_scope": "booking:room", "delegation_token": "issue"}
        reply = await bench.send("DELEGATE", "/", {**body, "callback": "https://10.0.0.1/"}, agent=ANN)
        assert (reply.status, reply.error["code"]) == (422, "callback-refused")
        assert await inbox(bench, BOB) == []


@pytest.mark.requirement("CORE-4.8-2", "CORE-7.6-8")
async def test_all_of_ones_authority_cannot_be_delegated() -> None:
    async with served() as bench:
        body = {"target_agent_id": BOB, "task": "x", "delegation_token": "issue"}
        scope = ["booking:*", "calendar:read"]
        reply = await bench.send("DELEGATE", "/", {**body, "authority_scope": scope}, agent=ANN)
        assert (reply.status, reply.error["type"]) == (262, "scope-required")
        assert "Delegate fewer or narrower scopes" in reply.error["message"]
        # A narrowed call may hand on all that it claims: the agent itself holds more.
        narrow = {**body, "authority_scope": "booking:room"}
        assert (await bench.send("DELEGATE", "/", narrow, agent=ANN, authority_scope="booking:room")).status == 200


@pytest.mark.requirement("CORE-4.8-2", "CORE-7.6-8")
async def test_an_agent_with_a_single_scope_is_told_what_to_do() -> None:
    agents = (Agent(agent_id=ANN, name="ann", scopes=("booking:room",), delegation_permitted=True), *AGENTS[1:])
    async with served(agents=agents) as bench:
        body = {"target_agent_id": BOB, "task": "x", "authority_scope": "booking:room", "delegation_token": "issue"}
        reply = await bench.send("DELEGATE", "/", body, agent=ANN)
        assert (reply.status, reply.error["type"], reply.error["declared"]) == (262, "scope-required", ["booking:room"])
        assert "needs a second one from its operator" in reply.error["message"]


async def test_a_repeated_call_with_one_key_offers_once() -> None:
    async with served() as bench:
        body = {"target_agent_id": BOB, "task": "x", "authority_scope": "booking:room", "delegation_token": "issue"}
        for _ in range(2):
            assert (await bench.send("DELEGATE", "/", body, agent=ANN, idempotency_key="k-1")).status == 200
        assert len(await inbox(bench, BOB)) == 1


async def test_a_delegator_cannot_flood_the_inbox_of_a_delegate() -> None:
    async with served() as bench:
        for _ in range(100):
            await delegated(bench)
        body = {"target_agent_id": BOB, "task": "x", "authority_scope": "booking:room", "delegation_token": "issue"}
        reply = await bench.send("DELEGATE", "/", body, agent=ANN)
        assert (reply.status, reply.error["code"]) == (503, "delegate-unavailable")


async def test_a_person_accepts_a_task_by_its_link_and_reports_the_result() -> None:
    async with reachable(methods=METHODS, agents=AGENTS) as desk:
        result = await delegated(desk.bench, "front-desk")
        assert "delegation_token" not in result
        token = await desk.token()
        shown = await desk.answers.look(token)
        assert (list(shown.choices), "BOOK" in shown.quoted) == (["accepted", "rejected"], True)
        await desk.answer(token)
        assert (await check(desk.bench, result["delegation_id"]))[1]["status"] == "accepted"
        assert list((await desk.answers.look(token)).choices) == ["done"]
        assert (await desk.answer(token, "done", "Room 7")).status == 200
        found = (await check(desk.bench, result["delegation_id"]))[1]
        assert (found["status"], found["details"]["result"]) == ("done", "Room 7")
        assert (await desk.answer(token, "done", "Room 8")).status == 409


async def test_a_task_for_nobody_is_refused_with_the_people_there_are() -> None:
    async with served() as bench:
        body = {"target_agent_id": "chef", "task": "x", "authority_scope": "booking:room", "delegation_token": "issue"}
        reply = await bench.send("DELEGATE", "/", body, agent=ANN)
        assert (reply.status, reply.error["people"]) == (404, ["operator"])


async def test_another_worker_refuses_the_token_of_a_cancelled_delegation(shared_place: str) -> None:
    key = OKPKey.generate_key("Ed25519")
    async with (
        served(key, store=open_store(shared_place)) as one,
        served(key, store=open_store(shared_place)) as two,
    ):
        result = await delegated(one, task_id="trip-1")
        assert await book(two, result["delegation_chain"]) == 200
        assert (await two.send("CANCEL", "/", {"target_id": "trip-1"}, agent=ANN)).status == 200
        async with asyncio.timeout(20):
            while await book(one, result["delegation_chain"]) == 200:
                await asyncio.sleep(0.01)
        assert await book(one, result["delegation_chain"]) == 551
