"""A channel is served in batches; a process that dies leaves the rest to another, and nobody receives twice."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tests.agent.discovery.web import Asked, send, serving
from tests.extensions.messages.parts import letter_of
from tests.messaging import ANN, METHODS, contents, sent, soon, subscribe
from tests.stateful import StatefulBench, keeping

from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.errors import StoreError
from bespeak.extensions.messages.methods_broadcast import Fanout
from bespeak.extensions.messages.settings import DeliverySettings
from bespeak.extensions.messages.store import AdvanceMany
from bespeak.protocol.exchange.instant import read_instant
from bespeak.state.store.commands.records import ChangeRecord, ClaimDue, FindRecord, ListRecords, Record
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Conflict

pytestmark = pytest.mark.anyio

AGENTS = [f"{number:064x}" for number in range(7)]


async def claimed(bench: StatefulBench, lease: float = -1.0) -> list[Record]:
    done = await bench.store.do(ClaimDue("broadcast", 10, lease))
    assert not isinstance(done, Conflict)
    records: list[Record] = done[0]
    return records


async def received(bench: StatefulBench) -> list[str]:
    return sorted(record.owner for record in await bench.store.read(ListRecords("message", limit=1000)))


async def begun(bench: StatefulBench, **fields: Any) -> str:
    """Broadcast to a channel on a server whose due loop rests."""
    await subscribe(bench, *AGENTS)
    made = await sent(bench, "BROADCAST", {"audience": "news", "content": "x", **fields})
    message_id: str = made["message_id"]
    return message_id


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.messages.methods_broadcast.BATCH", 3)
    monkeypatch.setattr("bespeak.runtime.background.DueLoop.start", lambda _: None)


async def test_every_subscriber_receives_it_once(shared_place: str) -> None:
    async with keeping(methods=METHODS, store=open_store(shared_place)) as bench:
        broadcast_id = await begun(bench)
        fanout = Fanout(bench.bench.server)
        await fanout.carry(await claimed(bench, 30.0))
        assert await received(bench) == AGENTS
        record: Record = await bench.store.read(FindRecord(("broadcast",), broadcast_id))
        assert record.due is None
        assert await claimed(bench) == []


async def test_batches_of_a_dead_process_go_to_another(shared_place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with keeping(methods=METHODS, store=open_store(shared_place)) as bench:
        await begun(bench)
        do, batches = bench.store.do, 0

        async def die(*commands: Any, **given: Any) -> Any:
            nonlocal batches
            batches += any(isinstance(command, AdvanceMany) for command in commands)
            if batches == 2:
                raise StoreError("killed")
            return await do(*commands, **given)

        monkeypatch.setattr(bench.store, "do", die)
        records = await claimed(bench)
        with pytest.raises(StoreError, match="killed"):
            await Fanout(bench.bench.server).carry(records)
        assert len(await received(bench)) == 3
        # The lease of what is left runs out.
        monkeypatch.undo()
        monkeypatch.setattr("bespeak.extensions.messages.methods_broadcast.BATCH", 3)
        [left] = await bench.store.read(ListRecords("broadcast"))
        await bench.store.do(ChangeRecord(left.record_id, ("broadcast",), (left.state,), left.state, delay=-1.0))
        await Fanout(bench.bench.server).carry(await claimed(bench))
        assert await received(bench) == AGENTS


async def test_a_claim_that_was_lost_delivers_nothing(shared_place: str) -> None:
    async with keeping(methods=METHODS, store=open_store(shared_place)) as bench:
        await begun(bench)
        lost = await claimed(bench)
        await claimed(bench, 30.0)
        await Fanout(bench.bench.server).carry(lost)
        assert await received(bench) == []


@pytest.mark.requirement("METHODS-7.2-4")
async def test_what_has_expired_is_not_delivered() -> None:
    async with keeping(methods=METHODS) as bench:
        expiry = soon(600)
        broadcast_id = await begun(bench, expiry=expiry)
        record = await bench.store.read(FindRecord(("broadcast",), broadcast_id))
        data = msgspec.json.decode(record.data)
        assert data["expires"] == pytest.approx(read_instant(expiry))
        expired = msgspec.json.encode({**data, "expires": 1.0}).decode()
        await bench.store.do(
            ChangeRecord(broadcast_id, ("broadcast",), (record.state,), record.state, data=expired, delay=-1.0)
        )
        await Fanout(bench.bench.server).carry(await claimed(bench))
        assert await received(bench) == []
        assert (await bench.store.read(FindRecord(("broadcast",), broadcast_id))).due is None


async def test_subscribers_with_a_callback_are_pushed_to_as_well() -> None:
    async with keeping(methods=METHODS) as bench:
        await begun(bench)
        [first, *_] = await bench.store.read(ListRecords("subscription"))
        data = '{"entity_type":"subscription","data":{"channel":"news","callback":"https://a.example/x"}}'
        changed = ChangeRecord(first.record_id, ("subscription",), (first.state,), first.state, data=data)
        await bench.store.do(changed)
        await Fanout(bench.bench.server).carry(await claimed(bench))
        assert len([row for row in await contents(bench) if "https://a.example/x" in row]) == 1
        assert ANN not in await received(bench)


async def test_a_verified_callback_receives_what_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()

    def agree(asked: Asked, writer: asyncio.StreamWriter) -> None:
        send(writer, 200, letter_of(asked)["content"])

    document = ServerDocument(extension_tables={"delivery": DeliverySettings(allow=("127.0.0.1",))})
    async with serving(agree, tls=False) as web, keeping(methods=METHODS, document=document) as bench:
        data = {"channel": "news", "callback": f"http://127.0.0.1:{web.port}/hook"}
        await sent(bench, "REGISTER", {"entity_type": "subscription", "data": data}, AGENTS[0])
        made = await sent(bench, "PUBLISH", {"channel": "news", "content": "rain"})
        async with asyncio.timeout(20):
            while len(web.asked) < 2:
                await asyncio.sleep(0.01)
        letter = letter_of(web.asked[1])
        assert (letter["kind"], letter["content"], letter["sender"]) == ("publication", "rain", ANN)
        assert letter["posting_id"].startswith(made["content_id"])
