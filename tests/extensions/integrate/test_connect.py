"""CONNECT (Tier 2 6.6): what is new at a source is moved to a destination, nothing is lost, nothing doubled."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import nats
import pytest
from nats.aio.msg import Msg
from tests.extensions.acquire.test_collections import put
from tests.extensions.acquire.test_methods import code, good
from tests.messaging import BOB, until_received
from tests.queues import queue_of
from tests.service import AGENT, make_endpoint
from tests.state.store.conftest import place, shared_place
from tests.stateful import StatefulBench, audited_backend, keeping
from tests.things import contracts, joining

from bespeak import App, Context, ContractError, Refusal
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.acquire.store import ListResources, NewRow, PutResources
from bespeak.extensions.integrate import connect as connecting
from bespeak.extensions.integrate.settings import ConnectSettings, NatsSettings
from bespeak.extensions.messages import store as message_commands
from bespeak.extensions.messages.settings import DeliverySettings
from bespeak.extensions.messages.store import PutInChannel
from bespeak.faces.agtp.server import AgtpServer
from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.wire.messages import Malformed
from bespeak.runtime.handling import OpenLimit
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, NextDue, PutRecord
from bespeak.state.store.postgres_connection import SCHEMA
from bespeak.state.store.postgres_transaction import run_command
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Command

anyio_backend = audited_backend
pytestmark = pytest.mark.anyio
__all__ = ["place", "shared_place"]
METHODS = ("CONNECT", "CHECK", "CANCEL", "SUBMIT", "IMPORT", "SCAN", "PUBLISH", "REGISTER")
QUICK = {"interval": 1}


class Reading(msgspec.Struct):
    n: int


async def connected(bench: StatefulBench, source: str, destination: str, **more: Any) -> str:
    told = await good(bench, "CONNECT", source=source, destination=destination, **more)
    return str(told["connection_id"])


async def until(bench: StatefulBench, connection_id: str, reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return what CHECK tells of a connection when it has come so far."""
    async with asyncio.timeout(20):
        while True:
            told = await good(bench, "CHECK", target=connection_id)
            if reached(told):
                return told
            await asyncio.sleep(0.01)


def moved(count: int) -> Callable[[dict[str, Any]], bool]:
    return lambda told: told["details"]["moved"] + told["details"]["failed"] >= count


async def look(bench: StatefulBench, connection_id: str) -> None:
    """Let a connection look now."""
    await bench.store.do(ChangeRecord(connection_id, ("connection",), ("active",), "active", delay=0.0))


async def rested(bench: StatefulBench) -> None:
    """Wait until no connection works: one that is told to look meanwhile sets its next look when it ends."""
    async with asyncio.timeout(20):
        while (await bench.store.read(NextDue(("connection",))))["connection"] < 1_000:
            await asyncio.sleep(0.01)


@pytest.mark.requirement("METHODS-6.6-1", "METHODS-6.6-2", "METHODS-6.6-6")
async def test_new_rows_are_moved_into_a_queue_once_and_in_order(place: str) -> None:
    done: list[int] = []

    async def measure(id: str, n: int) -> None:  # noqa: A002
        """Take a reading."""
        done.append(n)

    store = open_store(place, role="sole")
    try:
        async with keeping(methods=METHODS, participants=(queue_of(measure, concurrency=1),), store=store) as bench:
            await put(store, *({"id": str(n), "n": n} for n in range(130)), collection="papers")
            connection_id = await connected(bench, "collection:papers", "queue:invoices", config={"rate": 1000})
            told = await until(bench, connection_id, moved(130))
            assert (told["status"], told["details"]["channel_type"]) == ("active", "polling")
            await put(store, {"id": "a", "n": 130}, {"id": "b"}, {"id": "c", "n": 131}, collection="papers")
            await look(bench, connection_id)
            told = await until(bench, connection_id, moved(133))
            assert (told["details"]["moved"], told["details"]["failed"]) == (132, 1)
            assert told["details"]["error"]["code"] in {"invalid-payload", "invalid-item"}
            async with asyncio.timeout(20):
                while len(done) < 132:
                    await asyncio.sleep(0.01)
            assert done == list(range(132))
            assert (await good(bench, "CANCEL", target_id=connection_id))["status"] == "cancelled"
            await connected(bench, "collection:papers", "queue:invoices")  # its name is free again
    finally:
        await store.close()


async def test_two_processes_on_one_store_move_every_row_once(shared_place: str) -> None:
    service: dict[str, Any] = {"methods": METHODS}
    async with (
        keeping(**service, store=open_store(shared_place)) as one,
        keeping(**service, store=open_store(shared_place)) as other,
    ):
        await put(one.store, *({"n": n} for n in range(600)), collection="papers")
        copies = [
            await connected(bench, "collection:papers", f"collection:{name}", config={"rate": 1000, "interval": 1})
            for bench, name in ((one, "first"), (other, "second"), (one, "third"))
        ]
        for connection_id in copies:
            await until(other, connection_id, moved(600))
        for name in ("first", "second", "third"):
            rows = await one.store.read(ListResources(name, (AGENT,), 0, 1000))
            assert [msgspec.json.decode(row.data)["n"] for row in rows] == list(range(600)), name


@pytest.mark.parametrize("kind", ["resources", "entities"])
async def test_rows_of_a_transaction_that_commits_late_are_not_passed_by(postgres_store: str, kind: str) -> None:
    def add(first: int, count: int) -> list[Command]:
        if kind == "resources":
            new = tuple(NewRow(None, f'{{"n":{n}}}') for n in range(first, first + count))
            return [PutResources("contract", AGENT, new, "overwrite")]
        data = '{"entity_type":"contract","data":{"partner":"p","status":"draft"}}'
        records = (PutRecord(f"entity-{n}", "entity", AGENT, "live", data) for n in range(first, first + count))
        return [PutInChannel(record, "contract") for record in records]

    service: dict[str, Any] = {"methods": METHODS, "participants": joining(contracts)}
    late = await asyncpg.connect(postgres_store, server_settings={"search_path": SCHEMA})
    async with keeping(**service, store=open_store(postgres_store)) as bench:
        await bench.store.do(*add(0, 1))
        connection_id = await connected(bench, f"collection:{kind}:contract", "collection:copy", config=QUICK)
        await until(bench, connection_id, moved(1))
        async with late.transaction():
            for command in add(1, 1):
                await run_command(late, command, set(), no_seal)
            adding = asyncio.ensure_future(bench.store.do(*add(2, 150)))
            blocked = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            while not adding.done() and not await counted(postgres_store, blocked):
                await asyncio.sleep(0.01)
            if adding.done():
                await until(bench, connection_id, moved(151))
        await adding
        await look(bench, connection_id)
        await until(bench, connection_id, moved(152))
    await late.close()


async def no_seal(*_: Any) -> Any:
    """Seal nothing: no record of the audit trail is written."""


async def counted(dsn: str, query: str) -> int:
    connection = await asyncpg.connect(dsn)
    try:
        return int(await connection.fetchval(query))
    finally:
        await connection.close()


async def test_a_full_queue_lets_the_connection_wait_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    open_gate, done = asyncio.Event(), []

    async def measure(id: str) -> None:  # noqa: A002
        """Take a reading."""
        await open_gate.wait()
        done.append(id)

    monkeypatch.setattr(connecting, "_LONGEST_DELAY", 0.05)
    async with keeping(methods=METHODS, participants=(queue_of(measure),)) as bench:
        bench.bench.server.parts["submissions"] = OpenLimit("submission", 3)
        await put(bench.store, *({"id": f"r{n}"} for n in range(9)))
        connection_id = await connected(bench, "collection:papers", "queue:invoices")
        told = await until(bench, connection_id, lambda told: told["details"].get("attempts", 0) > 1)
        assert (told["details"]["moved"], told["details"]["error"]["code"]) == (3, "queue-full")
        open_gate.set()
        await until(bench, connection_id, moved(9))
        async with asyncio.timeout(20):
            while len(done) < 9:
                await asyncio.sleep(0.01)
        assert sorted(done) == [f"r{n}" for n in range(9)]


@pytest.mark.requirement("METHODS-6.6-4")
async def test_an_endpoint_is_polled_into_a_collection_whenever_its_answer_has_changed() -> None:
    now: dict[str, Any] = {"id": 1, "degrees": 20}
    weather = make_endpoint("FETCH", "/weather", lambda _: dict(now), scopes=("weather:read",))
    async with keeping(weather, methods=METHODS) as bench:
        ends: dict[str, Any] = {"source": "FETCH /weather", "destination": "collection:weather"}
        assert await code(bench, "CONNECT", **ends) == (404, "source-not-found")
        told = await good(bench, "CONNECT", **ends, authority="weather:read", config={"interval": 3600, "key": "id"})
        assert told["channel"] == {"interval": 3600, "rate": 100, "key": "id"}
        for degrees in (20, 20, 21):
            now["degrees"] = degrees
            await look(bench, told["connection_id"])
            await until(bench, told["connection_id"], moved(1 + (degrees == 21)))
            await rested(bench)
        rows = (await good(bench, "SCAN", collection="weather"))["items"]
        assert [row["degrees"] for row in rows] == [21]


def channels_of(app: App, taken: list[tuple[int, str]], begun: list[Any], ends: asyncio.Event) -> None:
    @app.channel("telemetry")
    async def telemetry(after: Reading | None = None) -> AsyncIterator[Reading]:
        begun.append(None if after is None else after.n)
        for n in range(after.n + 1 if after else 0, 6):
            yield Reading(n)
        await ends.wait()

    @app.channel("platform", errors={"faulty": "A faulty reading."})
    async def platform(reading: Reading, context: Context) -> None:
        """Observe."""
        key = context.request.headers["idempotency-key"]
        taken.append((reading.n, key))
        if reading.n == 2 and len([one for one in taken if one[0] == 2]) == 1:
            raise RuntimeError("the platform is off")
        if reading.n == 4:
            raise Refusal("faulty", "A faulty reading.")


@pytest.mark.requirement("METHODS-6.6-3")
async def test_a_function_that_yields_is_moved_to_a_sink_and_goes_on_behind_the_last_item(
    shared_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "_LONGEST_DELAY", 0.01)
    taken: list[tuple[int, str]] = []
    begun: list[Any] = []
    ends = asyncio.Event()

    def declare(app: App) -> None:
        channels_of(app, taken, begun, ends)

    @asynccontextmanager
    async def process() -> AsyncIterator[StatefulBench]:
        """Serve as one process after another does."""
        async with keeping(methods=METHODS, participants=joining(declare), store=open_store(shared_place)) as bench:
            yield bench

    async with process() as bench:
        connection_id = await connected(bench, "channel:telemetry", "channel:platform", channel_type="stream")
        told = await until(bench, connection_id, moved(6))
        assert (told["details"]["moved"], told["details"]["failed"]) == (5, 1)
        assert told["details"]["error"]["code"] == "faulty"
    # The other one failed once, and was tried again with the same key.
    assert [n for n, _ in taken] == [0, 1, 2, 2, 3, 4, 5]
    assert len({key for _, key in taken}) == 6
    assert begun == [None, 1]
    async with process() as bench:
        async with asyncio.timeout(20):
            while begun[-1] != 5:
                await asyncio.sleep(0.01)
        ends.set()
        told = await until(bench, connection_id, lambda told: told["status"] == "ended")
        assert told["components"][0]["message"] == "The source has no more items."
    assert len(taken) == 7


async def test_what_is_published_is_moved_to_the_inbox_of_another_agent() -> None:
    async with keeping(methods=METHODS) as bench:
        connection_id = await connected(bench, "messages:news", BOB)
        for n in range(3):
            await good(bench, "PUBLISH", channel="news", content={"n": n})
        found = await until_received(bench, 3)
        assert sorted(one["content"]["n"] for one in found) == [0, 1, 2]
        await good(bench, "CANCEL", target_id=connection_id)
        published = await good(bench, "PUBLISH", channel="news", content="later")
        assert published["subscribers"] == 0


async def test_what_is_published_while_too_much_waits_for_a_connection_is_dropped_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(message_commands, "MOST_WAITING", 3)
    open_gate, done = asyncio.Event(), []

    async def measure(n: int) -> None:
        """Take a reading."""
        await open_gate.wait()
        done.append(n)

    monkeypatch.setattr(connecting, "_LONGEST_DELAY", 0.05)
    async with keeping(methods=METHODS, participants=(queue_of(measure),)) as bench:
        bench.bench.server.parts["submissions"] = OpenLimit("submission", 1)
        connection_id = await connected(bench, "messages:news", "queue:invoices")
        await good(bench, "PUBLISH", channel="news", content={"n": 0})
        await until(bench, connection_id, moved(1))
        for n in range(1, 7):
            content = await good(bench, "PUBLISH", channel="news", content={"n": n})
            async with asyncio.timeout(20):
                while (await bench.store.read(FindRecord(("publication",), content["content_id"]))).due is not None:
                    await asyncio.sleep(0.01)
        told = await good(bench, "CHECK", target=connection_id)
        assert told["details"]["dropped"] == 3
        open_gate.set()
        await until(bench, connection_id, moved(4))
        async with asyncio.timeout(20):
            while len(done) < 4:
                await asyncio.sleep(0.01)
        assert done == [0, 1, 2, 3]


class Receiver:
    """An AGTP address that takes postings, and refuses the first ones."""

    def __init__(self, failing: int) -> None:
        self.failing = failing
        self.told: list[tuple[str, Any]] = []

    async def __call__(self, request: Request) -> Response:
        letter = msgspec.json.decode(request.body)["content"]
        if letter["kind"] != "verification":
            self.told.append((letter["posting_id"], letter["content"]))
            if len(self.told) <= self.failing:
                return Response(503)
        return Response(200, msgspec.json.encode({"status": 200, "result": letter["content"]}))

    def malformed(self, fault: Malformed, _: Connection) -> Response:
        return Response(fault.status)


async def test_an_address_that_agrees_gets_the_items_in_order_and_again_with_the_same_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connecting, "_LONGEST_DELAY", 0.01)
    receiver = Receiver(failing=2)
    server = AgtpServer(receiver)
    [(_, port)] = await server.start("127.0.0.1", 0)
    document = ServerDocument(extension_tables={"delivery": DeliverySettings(allow=("127.0.0.1",))})
    try:
        async with keeping(methods=METHODS, document=document) as bench:
            await put(bench.store, {"id": "a"}, {"id": "b"})
            address = f"agtp://127.0.0.1:{port}"
            connection_id = await connected(bench, "collection:papers", address, channel_type="webhook")
            await until(bench, connection_id, moved(2))
            assert [content["id"] for _, content in receiver.told] == ["a", "a", "a", "b"]
            assert len({posting for posting, _ in receiver.told}) == 2
            refused = await code(bench, "CONNECT", source="collection:papers", destination="agtp://127.0.0.1:1")
            assert refused == (404, "callback-refused")
    finally:
        await server.close()


@pytest.mark.requirement("METHODS-6.6-5")
async def test_a_connection_ends_with_its_time_or_the_authority_of_its_maker() -> None:
    async with keeping(methods=METHODS, participants=(queue_of(),)) as bench:
        await put(bench.store, {"id": "a"})
        connection_id = await connected(bench, "collection:papers", "inbox", ttl=0.2)
        told = await until(bench, connection_id, lambda told: told["status"] == "ended")
        assert "ended" in told["components"][0]["message"] or "end" in told["components"][0]["message"]
        assert "expires_at" in told


@pytest.mark.requirement("METHODS-6.6-7", "METHODS-6.6-8", "METHODS-6.6-9")
async def test_what_cannot_be_connected_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with keeping(methods=METHODS, participants=(queue_of(scopes=("bills:write",)),)) as bench:
        await put(bench.store, {"id": "a"})
        await put(bench.store, {"id": "a"}, collection="secret", owner=BOB)
        cases: list[tuple[str, str, dict[str, Any], int, str]] = [
            ("collection:nothing", "inbox", {}, 404, "source-not-found"),
            ("collection:secret", "inbox", {}, 404, "source-not-found"),
            ("FETCH /nothing", "inbox", {}, 404, "source-not-found"),
            ("channel:nothing", "inbox", {}, 404, "source-not-found"),
            ("papers", "inbox", {}, 404, "source-not-found"),
            ("collection:papers", "queue:invoices", {}, 404, "destination-not-found"),
            ("collection:papers", "queue:nothing", {}, 404, "destination-not-found"),
            ("collection:papers", "collection:No", {}, 404, "destination-not-found"),
            ("collection:papers", "channel:nothing", {}, 404, "destination-not-found"),
            ("collection:papers", "somewhere", {}, 404, "destination-not-found"),
            ("collection:papers", "https://127.0.0.1/", {}, 404, "callback-refused"),
            ("collection:papers", "collection:papers", {}, 409, "connection-loops"),
            ("nats:a", "inbox", {}, 503, "bus-unavailable"),
            ("collection:papers", "inbox", {"channel_type": "stream"}, 422, "invalid-channel-type"),
            ("collection:papers", "inbox", {"config": {"filter": {"n": {"near": 1}}}}, 422, "invalid-config"),
        ]
        for source, destination, more, number, name in cases:
            refused = await code(bench, "CONNECT", source=source, destination=destination, **more)
            assert refused == (number, name), (source, destination)
        await connected(bench, "collection:papers", "collection:copies")
        assert await code(bench, "CONNECT", source="collection:papers", destination="collection:copies") == (
            409,
            "connection-exists",
        )
        await put(bench.store, {"id": "a"}, collection="copies")
        back = await code(bench, "CONNECT", source="collection:copies", destination="collection:papers")
        assert back == (409, "connection-loops")
        back = await code(bench, "CONNECT", source="collection:resources:copies", destination="collection:papers")
        assert back == (409, "connection-loops")
        monkeypatch.setattr(connecting, "MOST_CONNECTIONS", 1)
        full = await code(bench, "CONNECT", source="collection:papers", destination="inbox")
        assert full == (409, "too-many-connections")


def test_a_channel_is_a_source_or_a_sink() -> None:
    app = App("Test", server_id="test.example", operator="Tests", contact="ops@test.example")

    async def two(a: int, b: int) -> None:
        """Take two."""

    async def begins(at: int) -> AsyncIterator[Reading]:
        yield Reading(at)

    for function in (two, begins):
        with pytest.raises(ContractError, match="takes"):
            app.channel("wrong")(function)


async def test_no_item_of_a_page_is_delivered_after_the_end_of_the_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    def declare(app: App) -> None:
        @app.channel("take")
        async def take(reading: Reading) -> None:
            """Take a reading, during which the key of the agent is revoked."""
            taken.append(reading.n)
            ended = Refused(401, "authority-expired", "The API key that made this was revoked.")
            monkeypatch.setattr(Authority, "judge", lambda *_: ended)

    async with keeping(methods=METHODS, participants=joining(declare)) as bench:
        await put(bench.store, *({"n": n} for n in range(5)))
        connection_id = await connected(bench, "collection:papers", "channel:take")
        async with asyncio.timeout(20):
            while (record := await bench.store.read(FindRecord(("connection",), connection_id))).state == "active":
                await asyncio.sleep(0.01)
        assert (taken, record.content()["ended"]["code"]) == ([0], "authority-expired")


async def cursor_of(bench: StatefulBench, connection_id: str) -> list[int]:
    record = await bench.store.read(FindRecord(("connection",), connection_id))
    cursor: list[int] = record.content()["cursor"]
    return cursor


async def _free_port() -> int:
    listening = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port: int = listening.sockets[0].getsockname()[1]
    listening.close()
    await listening.wait_closed()
    return port


@asynccontextmanager
async def jetstream(folder: Path) -> AsyncIterator[str]:
    """Run a NATS server with JetStream, and a stream for `plant.>`."""
    port = await _free_port()
    program = shutil.which("nats-server", path=str(Path(nats.__file__).parents[4] / "bin"))
    command = (str(program), "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder))
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
    try:
        async with asyncio.timeout(20):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    break
                except OSError:
                    await asyncio.sleep(0.02)
        writer.close()
        client = await nats.connect(f"nats://127.0.0.1:{port}")
        await client.jetstream().add_stream(name="plant", subjects=["plant.>"])
        await client.close()
        yield f"nats://127.0.0.1:{port}"
    finally:
        process.terminate()
        await process.wait()


@pytest.mark.process
async def test_items_cross_jetstream_once_although_what_was_committed_is_delivered_and_published_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bespeak.extensions.integrate import bus as events

    unheard: list[int] = []
    acknowledge = Msg.ack_sync

    async def lose(self: Msg, timeout: float = 1.0) -> Any:  # as if the process ended before it acknowledges
        if len(unheard) < 5:
            unheard.append(self.metadata.sequence.stream)
            raise TimeoutError
        return await acknowledge(self, timeout)

    monkeypatch.setattr(events, "_ACK_WITHIN", 0.3)
    monkeypatch.setattr(Msg, "ack_sync", lose)
    async with jetstream(tmp_path) as address:
        bus = ConnectSettings(nats=NatsSettings(servers=(address,), subjects=("plant.*",)))
        document = ServerDocument(extension_tables={"connect": bus})
        async with keeping(methods=METHODS, document=document) as bench:
            await put(bench.store, *({"id": f"r{n}", "n": n} for n in range(5)))
            outward = await connected(bench, "collection:papers", "nats:plant.a", channel_type="event-bus")
            inward = await connected(bench, "nats:plant.a", "collection:copies")
            await until(bench, outward, moved(5))
            await until(bench, inward, moved(5))
            rows = (await good(bench, "SCAN", collection="copies"))["items"]
            assert [row["n"] for row in rows] == list(range(5))
            # A process that was killed behind the delivery publishes again, with the same ids.
            record = await bench.store.read(FindRecord(("connection",), outward))
            began = msgspec.json.encode({**record.content(), "cursor": None, "moved": 0}).decode()
            await bench.store.do(ChangeRecord(outward, ("connection",), ("active",), "active", data=began, delay=0.0))
            await until(bench, outward, lambda told: told["details"]["moved"] == 5)
            await put(bench.store, {"id": "last", "n": 9})
            await look(bench, outward)
            await until(bench, inward, moved(6))
            async with asyncio.timeout(20):
                while {1, 2, 3, 4, 5} & {*await cursor_of(bench, inward)}:
                    await asyncio.sleep(0.05)  # what has come again is acknowledged, and forgotten at the next item
                    await put(bench.store, {"id": f"more{time.monotonic()}", "n": 0})
                    await look(bench, outward)
            rows = (await good(bench, "SCAN", collection="copies", page_size=1000))["items"]
            assert unheard == [1, 2, 3, 4, 5]
            assert [row["n"] for row in rows][:6] == [0, 1, 2, 3, 4, 9]
            assert len({row["id"] for row in rows}) == len(rows)
            assert await code(bench, "CONNECT", source="nats:office.a", destination="inbox") == (
                404,
                "source-not-found",
            )
            assert await code(bench, "CONNECT", source="nats:plant.>", destination="inbox") == (404, "source-not-found")


@pytest.mark.process
async def test_hostile_messages_hold_up_no_others_and_none_counts_as_moved_that_was_not(tmp_path: Path) -> None:
    hostile = (
        b'{"x": "' + b"y" * 900_000 + b'"}',
        b"\xff" * 900_000,  # larger as text
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a": 1e999}',
        b"7",
        b'{"n": 1}',
    )
    async with jetstream(tmp_path) as address:
        bus = ConnectSettings(nats=NatsSettings(servers=(address,), subjects=("plant.*",)))
        async with keeping(methods=METHODS, document=ServerDocument(extension_tables={"connect": bus})) as bench:
            client = await nats.connect(address)
            for body in hostile:
                await client.jetstream().publish("plant.a", body)
            await client.close()
            inward = await connected(bench, "nats:plant.a", "collection:copies", config={"rate": 1000})
            told = await until(bench, inward, moved(len(hostile)))
            rows = (await good(bench, "SCAN", collection="copies"))["items"]
            assert (told["details"]["moved"], told["details"]["failed"]) == (2, 4)
            assert [row.get("n", row.get("data")) for row in rows] == ['{"a": 1e999}', 1]
            long = "nats:plant." + "a" * 900
            assert (await good(bench, "CONNECT", source=long, destination="inbox"))["source"] == long


async def test_errors_of_the_event_bus_tell_nothing_of_its_servers() -> None:
    servers = ("nats://ann:s3cret@127.0.0.1:1",)
    bus = ConnectSettings(nats=NatsSettings(servers=servers, subjects=("plant.*",)))
    async with keeping(methods=METHODS, document=ServerDocument(extension_tables={"connect": bus})) as bench:
        reply = await bench.send("CONNECT", "/", {"source": "nats:plant.a", "destination": "inbox"})
        assert reply.refusal == (503, "bus-unavailable")
        assert not [one for one in ("s3cret", "127.0.0.1") if one in reply.error["message"]]
