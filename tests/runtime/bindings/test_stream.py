"""Handlers that yield: their declaration, collected answers, streams, and the ends of streams."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Annotated, Any

import msgspec
import pytest
from tests.cases import rows
from tests.service import AGENT, build
from tests.streams import SIZE, Room, Served, Streams, serving

import bespeak
from bespeak import App, Needs, Upload
from bespeak.agent.client.errors import BusinessError, ServerFaultError, ServiceError
from bespeak.contract.limits import StreamLimits
from bespeak.documents.deployment.endpoint_toml import endpoint_of
from bespeak.errors import ContractError
from bespeak.protocol.exchange.messages import ITEMS, Batch, Connection, Request, Response
from bespeak.runtime.bindings import stream as module
from bespeak.runtime.concurrency import running_threads
from bespeak.state.store.commands.agents import PutAgent
from bespeak.state.store.commands.audit import LatestAudit
from bespeak.text.reading.text_file import toml_table

pytestmark = pytest.mark.anyio
FACES = ("agtp", "http")
Call = dict[str, Any]


async def take(items: AsyncIterator[Any], found: list[Any]) -> None:
    """Read a stream, keeping what came before it broke off."""
    async for item in items:
        found.append(item)  # noqa: PERF401 - a comprehension would lose them


def declare(function: Any, impact: str = "informational") -> App:
    app = App("S", server_id="s.example", operator="T", contact="a@b.example")
    app.endpoint("QUERY", "/things", impact=impact, intent="List things.", outcome="They are listed.")(function)  # type: ignore[arg-type]
    return app


async def no_annotation():
    yield 1


async def not_an_iterator() -> list[int]:  # type: ignore[misc]
    yield 1


async def anything() -> AsyncIterator[Any]:
    yield 1


class Unknown:
    """Has no schema."""


async def no_schema() -> AsyncIterator[Unknown]:
    yield Unknown()


async def rooms() -> AsyncIterator[Room]:
    yield Room("1")


async def filled(session: Annotated[str, Needs(lambda: "s")]) -> AsyncIterator[Room]:
    yield Room(session)


async def scanned(page: Upload) -> AsyncIterator[Room]:
    yield Room(page.name)


@rows(
    "function, impact, said",
    (filled, "informational", "a provider cannot fill 'session'"),
    (scanned, "informational", "can neither take nor send files"),
    (no_annotation, "informational", "has no return annotation; write -> AsyncIterator[Item]"),
    (not_an_iterator, "informational", "returns list[int]; write -> AsyncIterator[Item]"),
    (anything, "informational", "write -> AsyncIterator[Item]"),
    (no_schema, "informational", "has no JSON Schema"),
    (rooms, "irreversible", "must not break off in the middle"),
)
def test_a_declaration_that_cannot_be_streamed_says_what_to_write(function: Any, impact: str, said: str) -> None:
    with pytest.raises(ContractError) as error:
        declare(function, impact)
    assert said in str(error.value)


def test_the_contract_has_the_collected_form_and_says_that_it_streams() -> None:
    (endpoint,) = declare(rooms).service().endpoints
    assert endpoint.streams
    assert endpoint.output_schema["properties"] == {"items": {"type": "array", "items": {"$ref": "#/$defs/Room"}}}
    assert endpoint.output_schema["required"] == ["items"]


async def test_a_caller_that_does_not_ask_gets_the_items_in_one_answer() -> None:
    async with bespeak.connect(Streams().app) as service:
        assert await service.call("QUERY", "/rooms", count=2) == {
            "items": [{"room_id": "0", "beds": 1}, {"room_id": "1", "beds": 1}]
        }
        assert await service.call("QUERY", "/words") == {"items": ["False 0", "False 1", "False 2"]}
        shaped = await service.request("QUERY", "/rooms", {"count": 1}, fields=["items.beds"])
        assert shaped.output == {"items": [{"beds": 1}]}


@rows(
    "limits, path, given, code",
    (StreamLimits(max_items=2), "/rooms", {}, "stream-required"),
    (StreamLimits(max_bytes=3 * SIZE), "/ticks", {}, "stream-required"),
    (StreamLimits(seconds=0.05), "/ticks", {"pause": True}, "stream-timeout"),
)
async def test_an_answer_that_is_not_streamed_is_bounded(
    limits: StreamLimits, path: str, given: Call, code: str
) -> None:
    async with serving(limits=limits) as served, bespeak.connect(served.uri("agtp")) as service:
        with pytest.raises(ServiceError) as error:
            await service.call("QUERY", path, **given)
        assert error.value.code == code
        await served.closed()
    if code == "stream-required":
        assert "Prefer: stream" in str(error.value)
        assert "Accept: application/x-ndjson" in str(error.value)


@rows("face", *FACES)
async def test_a_stream_has_the_declared_part_of_each_item(face: str) -> None:
    async with serving() as served, bespeak.connect(served.uri(face)) as service:
        for waits in (False, True):
            found = [item async for item in service.stream("QUERY", "/rooms", count=3, waits=waits)]
            assert found == [{"room_id": str(number), "beds": 1} for number in range(3)]
        assert [item async for item in service.stream("QUERY", "/words", count=70)][-1] == "False 69"
        assert [item async for item in service.stream("QUERY", "/rooms", count=0)] == []
        assert await service.call("QUERY", "/rooms", count=0) == {"items": []}


@rows("face", *FACES)
async def test_a_stream_has_no_bound_of_items(face: str) -> None:
    limits = StreamLimits(max_items=5, max_bytes=1000)
    async with serving(limits=limits) as served, bespeak.connect(served.uri(face)) as service:
        count = 0
        async with aclosing(service.stream("QUERY", "/ticks")) as ticks:
            async for tick in ticks:
                assert len(tick) == SIZE
                count += 1
                if count == 300:
                    break
        await served.closed()


@rows("face", *FACES)
async def test_a_failure_in_the_middle_raises_the_same_error_after_the_items(face: str) -> None:
    async with serving() as served, bespeak.connect(served.uri(face)) as service:
        for after in (0, 2):
            found: list[Any] = []
            with pytest.raises(BusinessError) as error:
                await take(service.stream("QUERY", "/rooms", fail_after=after), found)
            assert [item["room_id"] for item in found] == [str(number) for number in range(after)]
            assert (error.value.status, error.value.code, error.value.details) == (422, "sold_out", {"left": 0})


@rows("face", *FACES)
@rows(
    "kind, code",
    ("wrong", "output-validation-failed"),
    ("huge", "item-too-large"),
    ("raises", "server-error"),
    ("exits", "server-error"),
)
async def test_a_handler_that_fails_breaks_the_stream_off_and_tells_nothing(
    face: str, kind: str, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving() as served, bespeak.connect(served.uri(face)) as service:
        found: list[Any] = []
        with pytest.raises(ServerFaultError) as error:
            await take(service.stream("QUERY", "/odd", kind=kind), found)
        await served.closed()
        assert await service.call("QUERY", "/words", count=1) == {"items": ["False 0"]}
    assert ([item["room_id"] for item in found], error.value.code) == (["fine"], code)
    assert "secret" not in str(error.value)
    assert not [record for record in caplog.records if "exception was never retrieved" in record.getMessage()]


@rows("face", *FACES)
async def test_leaving_the_loop_closes_the_generator(face: str) -> None:
    async with serving() as served, bespeak.connect(served.uri(face)) as service:
        async for _ in service.stream("QUERY", "/ticks", pause=True):
            break
        await served.closed()
        async for _ in service.stream("QUERY", "/words", count=10_000):
            break
        assert await asyncio.to_thread(served.streams.thread_closed.wait, 20)


async def test_a_stream_ends_when_its_time_is_over() -> None:
    async with serving(limits=StreamLimits(seconds=0.05)) as served, bespeak.connect(served.uri("agtp")) as service:
        for path in ("/ticks", "/stubborn"):
            served.streams.closed.clear()
            given = {"pause": True} if path == "/ticks" else {}
            with pytest.raises(ServiceError) as error:
                assert len([item async for item in service.stream("QUERY", path, **given)]) >= 1
            assert error.value.code == "stream-timeout"
            await served.closed()


async def test_items_of_one_answer_end_in_time_although_their_thread_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLOSING", 0.0)
    release, closed = threading.Event(), threading.Event()

    def hang() -> Iterator[int]:
        try:
            yield 1
            release.wait(10)
            yield 2
        finally:
            closed.set()

    items = module._in_threads(hang(), AGENT)
    assert await anext(items) == 1
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(items), 0.05)
    assert not closed.is_set()
    release.set()
    assert await asyncio.to_thread(closed.wait, 20)
    async with asyncio.timeout(20):
        while module._running:
            await asyncio.sleep(0.01)


async def test_no_stream_task_and_no_thread_is_left_behind() -> None:
    async with serving() as served, bespeak.connect(served.uri("agtp"), pool_size=2) as service:
        for _ in range(5):
            for path in ("/ticks", "/words", "/stubborn"):
                async with aclosing(service.stream("QUERY", path)) as items:
                    await anext(items)
        async with asyncio.timeout(20):
            while module._running or running_threads():
                await asyncio.sleep(0.01)


# Authority


def secrets(served: Served) -> Request:
    headers = {"agent-id": AGENT, "authority-scope": "rooms:read", "prefer": "stream"}
    return Request("QUERY", "/secrets", "", headers, b"", Connection())


async def answer(served: Served, request: Request) -> Response:
    found = served.dispatcher(request)
    return found if isinstance(found, Response) else await found


async def last(response: Response) -> Batch:
    """Read a stream to its end."""
    assert response.stream is not None
    async with asyncio.timeout(20):
        while True:
            batch = await response.stream.next()
            if batch.ended or batch.failure is not None:
                return batch


@pytest.fixture
def judged_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "JUDGED_EVERY", 0.0)


@pytest.mark.usefixtures("judged_always")
async def test_a_stream_ends_with_the_agent_that_is_revoked_or_loses_its_scope() -> None:
    for status, scopes, number in (("revoked", '["rooms:read"]', 410), ("active", '["other:read"]', 455)):
        async with serving() as served:
            response = await answer(served, secrets(served))
            server = served.dispatcher.server
            assert server.store is not None
            document = f'{{"agent_id": "{AGENT}", "name": "p", "status": "{status}", "scopes": {scopes}}}'
            await server.store.do(PutAgent(AGENT, "p", status, document, "operator"))
            await server.agents.refresh()
            failure = (await last(response)).failure
            assert failure is not None
            assert failure.status == number
            await served.closed()


@pytest.mark.usefixtures("judged_always")
async def test_a_stream_ends_with_the_credential_of_its_caller() -> None:
    async with serving() as served:
        principals = served.dispatcher.server.principals
        resolve = principals.resolve

        def resolved(agent_id: str | None, scope: str | None) -> Any:
            return msgspec.structs.replace(resolve(agent_id, scope), expires=time.time() + 3600)

        principals.resolve = resolved  # type: ignore[method-assign]
        response = await answer(served, secrets(served))
        principals.clock = lambda: time.time() + 7200
        failure = (await last(response)).failure
        assert failure is not None
        assert (failure.status, failure.code) == (401, "authority-expired")
        await served.closed()


@pytest.mark.usefixtures("judged_always")
async def test_items_of_one_answer_end_with_the_credential_too() -> None:
    async with serving() as served:
        principals = served.dispatcher.server.principals
        resolve, sent = principals.resolve, []

        def resolved(agent_id: str | None, scope: str | None) -> Any:
            return msgspec.structs.replace(resolve(agent_id, scope), expires=time.time() + 3600)

        def take_item(item: bytes) -> None:  # as MCP and A2A do, which send each item at once
            sent.append(item)
            principals.clock = lambda: time.time() + 7200

        principals.resolve = resolved  # type: ignore[method-assign]
        request = secrets(served)
        token = ITEMS.set(take_item)
        response = await answer(served, msgspec.structs.replace(request, headers={**request.headers, "prefer": ""}))
        ITEMS.reset(token)
        assert (response.status, response.code, sent) == (401, "authority-expired", [b"0"])
        await served.closed()


async def test_a_caller_without_scope_gets_no_item() -> None:
    async with serving() as served, bespeak.connect(served.uri("http")) as service:
        with pytest.raises(ServiceError):
            await anext(service.stream("QUERY", "/secrets"))
    assert served.streams.closed.is_set() is False


# State


async def test_an_answer_that_is_kept_is_collected() -> None:
    async with serving(audited=True) as served:
        headers = {"agent-id": AGENT, "prefer": "stream", "idempotency-key": "k1"}
        request = Request("MODIFY", "/rooms", "", headers, b"", Connection())
        first, again = await answer(served, request), await answer(served, request)
    assert first.stream is None
    assert first.body == again.body == b'{"items":[{"room_id":"1","beds":1}]}'
    assert served.streams.yielded == 1


async def test_a_stream_is_recorded_before_its_first_byte_and_again_if_it_breaks_off() -> None:
    async with serving(audited=True) as served:
        store = served.dispatcher.server.store
        assert store is not None

        async def statuses() -> int:
            return len(await store.read(LatestAudit(10)))

        request = Request("QUERY", "/rooms", "", {"agent-id": AGENT, "prefer": "stream"}, b"", Connection())
        response = await answer(served, request)
        assert await statuses() == 1
        assert response.header("Audit-ID")
        assert (await last(response)).ended
        assert await statuses() == 1
        broken = await answer(served, msgspec.structs.replace(request, body=b'{"fail_after":1}'))
        failure = (await last(broken)).failure
        assert failure is not None
        assert failure.header("Audit-ID")
        assert await statuses() == 3


# Endpoints of files

FILE = """
[endpoint]
method = "QUERY"
path = "/rooms"
description = "Lists rooms."
errors = []
input = {}
{streams}

[endpoint.semantic]
intent = "List the rooms."
actor = "agent"
outcome = "The rooms are returned."
confidence = 0.9
impact = "informational"
is_idempotent = true

[endpoint.output_schema]
type = "object"
required = ["items"]
properties.{items} = { type = "array", items = { type = "object", required = ["room_id"] } }

[endpoint.handler]
{handler}
"""
YIELDS = 'type = "registered_function"\nfunction = "tests.runtime.bindings.test_stream.rooms"'
RETURNS = 'type = "registered_function"\nfunction = "tests.service.echo"'
COMPOSED = 'type = "composition"\nrecipe = "r"'


@rows(
    "streams, items, handler, said",
    ("streams = true", "items", YIELDS, None),
    ("", "items", YIELDS, "write `streams = true`"),
    ("streams = true", "rooms", YIELDS, 'an object with the array "items"'),
    ("streams = true", "items", RETURNS, "its function must yield"),
    ("streams = true", "items", COMPOSED, "yields no items"),
)
async def test_an_endpoint_file_says_that_its_function_yields(
    streams: str, items: str, handler: str, said: str | None
) -> None:
    text = FILE.replace("{streams}", streams).replace("{items}", items).replace("{handler}", handler)
    endpoint, _ = endpoint_of(toml_table(text, "rooms.toml"), "rooms.toml")  # type: ignore[arg-type]
    assert endpoint is not None
    bench = build(endpoint)
    found = [finding.message for finding in bench.findings if finding.severity == "error"]
    if said is None:
        request = Request("QUERY", "/rooms", "", {}, b"", Connection())
        answered = bench.dispatcher(request)
        response = answered if isinstance(answered, Response) else await answered
        assert (found, response.body) == ([], b'{"items":[{"room_id":"1","beds":1}]}')
    else:
        assert any(said in message for message in found)
