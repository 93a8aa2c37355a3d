"""QUERY /messages shows an agent its own messages, in pages, and changes nothing."""

from __future__ import annotations

import pytest
from tests.messaging import ANN, BOB, contents, inbox, sent
from tests.service import build
from tests.stateful import StatefulBench, keeping

from bespeak.app.server.assembly import list_builtins
from bespeak.contract.service import ServerIdentity, Service

pytestmark = pytest.mark.anyio

IDENTITY = ServerIdentity(server_id="rooms.example", operator="Acme", contact="desk@rooms.example")


async def write(bench: StatefulBench, *texts: str) -> None:
    for text in texts:
        await sent(bench, "NOTIFY", {"recipient": BOB, "content": text})


async def test_reading_changes_nothing_and_shows_everything_again() -> None:
    async with keeping() as bench:
        await write(bench, "one", "two")
        before = await contents(bench)
        assert await inbox(bench) == await inbox(bench)
        assert await contents(bench) == before
        assert await inbox(bench, ANN) == []


async def test_pages_are_complete_and_do_not_overlap() -> None:
    async with keeping() as bench:
        texts = [f"{number}" for number in range(7)]
        await write(bench, *texts)
        found, after, pages = [], {}, 0
        while True:
            reply = (await bench.send("QUERY", "/messages", {"limit": 3, **after}, agent=BOB)).json["result"]
            found += [message["content"] for message in reply["messages"]]
            pages += 1
            if "next" not in reply:
                break
            after = {"after": reply["next"]}
        assert (sorted(found), pages) == (texts, 3)


async def test_a_page_is_bounded_in_bytes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.messages.methods_inbox._MOST_BYTES", 100)
    async with keeping() as bench:
        await write(bench, "x" * 200, "y" * 200)
        assert len(await inbox(bench)) == 1


async def test_messages_are_chosen_by_state_and_thread() -> None:
    async with keeping() as bench:
        await write(bench, "one", "two")
        first = (await inbox(bench))[0]
        await sent(bench, "CONFIRM", {"target_id": first["message_id"], "status": "deferred"}, BOB)
        assert [message["message_id"] for message in await inbox(bench, state="read")] == [first["message_id"]]
        assert len(await inbox(bench, state="unread")) == 1
        assert await inbox(bench, thread_id=first["thread_id"]) == await inbox(bench, state="read")
        assert await inbox(bench, thread_id="%") == []


async def test_a_cursor_that_is_none_is_refused() -> None:
    async with keeping() as bench:
        for cursor in ("x", "nan~msg-1", "1e999~msg", "-1~m"):
            reply = await bench.send("QUERY", "/messages", {"after": cursor}, agent=BOB)
            assert (reply.status, reply.error["code"]) == (422, "invalid-after"), cursor
        assert (await bench.send("QUERY", "/messages", {}, agent=None)).status == 262


def test_a_server_without_a_store_has_no_inbox() -> None:
    assert build().send("QUERY", "/messages", {}).status == 501
    assert "/messages" not in {endpoint.path for endpoint in list_builtins(Service(identity=IDENTITY), stored=False)}
