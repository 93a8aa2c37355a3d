"""A callback is used only if it answers, and agrees to receive for the agent that names it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from tests.agent.discovery.web import Asked, Script, always, redirect, send, serving
from tests.extensions.messages.parts import letter_of
from tests.service import AGENT, Reply
from tests.stateful import StatefulBench, keeping

from bespeak.contract.agent import Agent
from bespeak.contract.delivery import DeliverySettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.messages.posting import TOPIC
from bespeak.faces.agtp.server import AgtpServer
from bespeak.protocol.exchange.messages import Connection, Malformed, Request, Response
from bespeak.state.store.commands.messages import NextOutbox

pytestmark = pytest.mark.anyio


def echo(asked: Asked, writer: asyncio.StreamWriter) -> None:
    send(writer, 200, letter_of(asked)["content"])


def echo_for_another(asked: Asked, writer: asyncio.StreamWriter) -> None:
    send(writer, 200, {**letter_of(asked)["content"], "agent_id": "f" * 64})


def flood(_: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10000000\r\n\r\n" + b"[" * 1_000_000)


@asynccontextmanager
async def calling_back(**settings: Any) -> AsyncIterator[Callable[[str], Any]]:
    """Serve SUBMIT; yield a function that submits an item with a callback."""
    delivery = DeliverySettings(allow=("127.0.0.1",), **settings)
    async with keeping(methods=("SUBMIT",), document=ServerDocument(delivery=delivery)) as bench:

        async def submit(callback: str) -> tuple[StatefulBench, Reply]:
            return bench, await bench.send("SUBMIT", "/", {"target": "t", "payload": 1, "callback": callback})

        yield submit


@pytest.mark.requirement("METHODS-10.5-2")
async def test_a_callback_that_repeats_the_challenge_for_the_agent_is_used() -> None:
    async with serving(echo, tls=False) as web, calling_back() as submit:
        _, reply = await submit(f"http://127.0.0.1:{web.port}/hook")
        assert reply.status == 200
        async with asyncio.timeout(20):
            while len(web.asked) < 2:
                await asyncio.sleep(0.01)
    asked, told = map(letter_of, web.asked)
    assert (asked["kind"], asked["content"]["agent_id"]) == ("verification", AGENT)
    assert (told["kind"], told["content"]["tracking_id"]) == ("callback", reply.json["result"]["tracking_id"])


@pytest.mark.requirement("METHODS-10.5-2")
@pytest.mark.parametrize("script", [always(200), always(200, []), echo_for_another, always(500), redirect("/x"), flood])
async def test_a_callback_that_does_not_agree_is_refused_and_nothing_is_kept(script: Script) -> None:
    async with serving(script, tls=False) as web, calling_back() as submit:
        bench, reply = await submit(f"http://127.0.0.1:{web.port}/hook")
        assert (reply.status, reply.error["code"]) == (422, "callback-refused")
        assert await bench.store.read(NextOutbox(TOPIC)) is None
    assert len(web.asked) == 1


@pytest.mark.requirement("METHODS-10.5-1")
async def test_the_operator_may_vouch_for_a_callback_but_it_must_be_reachable() -> None:
    async with calling_back(recipients=("127.0.0.1",)) as submit:
        async with serving(always(204), tls=False) as web:
            assert (await submit(f"http://127.0.0.1:{web.port}/"))[1].status == 200
        assert (await submit(f"http://127.0.0.1:{web.port}/"))[1].status == 422


@pytest.mark.parametrize(
    "callback",
    ["https://10.0.0.1/", "agtp://localhost", "https://metadata.internal/", "mailto:ann@acme.example", "nonsense"],
)
async def test_private_and_unsuitable_callbacks_are_refused_without_details(callback: str) -> None:
    async with calling_back() as submit:
        _, reply = await submit(callback)
        assert (reply.status, reply.error["code"]) == (422, "callback-refused")
        assert "private" not in reply.error["message"]


async def test_an_agtp_server_answers_in_its_envelope() -> None:
    seen: list[Any] = []

    class Notified:
        def __call__(self, request: Request) -> Response:

            body = msgspec.json.decode(request.body)
            seen.append(body)
            return Response(200, msgspec.json.encode({"status": 200, "result": body["content"]["content"]}))

        def malformed(self, fault: Malformed, connection: Connection) -> Response:
            return Response(fault.status)

    server = AgtpServer(Notified())
    [(_, port)] = await server.start("127.0.0.1", 0)
    try:
        async with calling_back() as submit:
            assert (await submit(f"agtp://127.0.0.1:{port}"))[1].status == 200
    finally:
        await server.close()
    assert seen[0]["recipient"] == AGENT


async def test_another_bespeak_server_answers_for_its_agents_and_takes_the_posting_into_their_inbox() -> None:
    ann = Agent(agent_id=AGENT, name="ann")
    async with keeping(agents=(ann,), require_known_agents=False) as home, calling_back() as submit:
        server = AgtpServer(home.bench.dispatcher)
        [(_, port)] = await server.start("127.0.0.1", 0)
        try:
            stranger = await submit(f"agtp://{'e' * 64}@127.0.0.1:{port}")
            assert stranger[1].error["code"] == "callback-refused"
            _, reply = await submit(f"agtp://127.0.0.1:{port}")
            assert reply.status == 200
            inbox: list[Any] = []
            async with asyncio.timeout(20):
                while not inbox:
                    inbox = (await home.send("QUERY", "/messages")).json["result"]["messages"]
        finally:
            await server.close()
    letter = inbox[0]["content"]
    assert (letter["kind"], letter["content"]["tracking_id"]) == ("callback", reply.json["result"]["tracking_id"])
