"""What waits in the outbox is attempted until it is delivered, has failed or has expired, by one process at a time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.agent.discovery.web import HOST, Asked, Web, always, in_turn, send, serving
from tests.cases import rows
from tests.extensions.messages.parts import SERVER, delivering, letter_of, posting

from bespeak.contract.handler import Refusal
from bespeak.errors import ConfigError
from bespeak.extensions.messages.delivery import Delivery, Drain, FunctionChannel, backoff
from bespeak.extensions.messages.posting import AT_MOST_ONCE, TOPIC, Posting, post
from bespeak.extensions.messages.settings import DeliverySettings, SmtpSettings
from bespeak.extensions.messages.store import NextOutbox, PutOutbox
from bespeak.extensions.messages.transports import Delivered, Outcome, Retry, Undeliverable
from bespeak.state.store.commands.records import FindRecord, PutRecord
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio

KIND = "message"


def at_once(_: int) -> float:
    return 0.0


@pytest.fixture
async def memory() -> AsyncIterator[Store]:
    store = open_store("memory", role="sole")
    await store.start()
    yield store
    await store.close()


@asynccontextmanager
async def draining(
    store: Store, *, backoff: Callable[[int], float] = at_once, lease: float | None = None, **settings: Any
) -> AsyncIterator[Drain]:
    drain = Drain(store, delivering(**settings), backoff=backoff, lease=lease)
    drain.start()
    try:
        yield drain
    finally:
        await drain.stop()


async def put(store: Store, address: str, *numbers: str, **fields: Any) -> None:
    """Queue postings, each with a record that waits for it."""
    for number in numbers or ("1",):
        one = posting(number, record_id=f"record-{number}", **fields)
        await store.do(PutRecord(f"record-{number}", KIND, "ann", "queued", "{}"), post(address, one))


async def state(store: Store, number: str = "1") -> str:
    record = await store.read(FindRecord((KIND,), f"record-{number}"))
    return str(record.state)


async def settled(store: Store, *numbers: str) -> list[str]:
    """Wait until postings are neither queued nor under way; return the states of their records."""
    async with asyncio.timeout(30):
        while True:
            states = [await state(store, number) for number in numbers or ("1",)]
            if not {"queued", "sent"} & set(states):
                return states
            await asyncio.sleep(0.01)


def ids(web: Web) -> list[str]:
    return [asked.headers["idempotency-key"] for asked in web.asked]


async def test_a_posting_is_attempted_until_it_is_delivered_under_one_key(store: Store) -> None:
    script = in_turn(always(500), lambda _, writer: writer.close(), always(200))
    async with serving(script, tls=False) as web, draining(store):
        await put(store, web.url)
        assert await settled(store) == ["delivered"]
    assert ids(web) == ["posting-1"] * 3
    assert await store.read(NextOutbox(TOPIC)) is None


async def test_a_posting_fails_after_the_last_attempt_or_when_no_attempt_can_succeed(store: Store) -> None:
    async with (
        serving(always(500), tls=False) as web,
        serving(always(404), tls=False) as gone,
        draining(store, attempts=3),
    ):
        await put(store, web.url, "1")
        await put(store, gone.url, "2")
        assert await settled(store, "1", "2") == ["failed", "failed"]
    assert (len(web.asked), len(gone.asked)) == (3, 1)
    assert await store.read(NextOutbox(TOPIC)) is None


async def test_an_expired_posting_is_not_attempted(memory: Store) -> None:
    async with serving(always(200), tls=False) as web, draining(memory):
        await put(memory, web.url, "1", expires=1.0)
        await put(memory, web.url, "2", expires=4e9)
        assert await settled(memory, "1", "2") == ["expired", "delivered"]
    assert ids(web) == ["posting-2"]


async def test_a_record_that_no_longer_waits_stays_as_it_is(store: Store) -> None:
    async with serving(always(200), tls=False) as web:
        await store.do(PutRecord("record-1", KIND, "ann", "cancelled", "{}"))
        await store.do(post(web.url, posting(record_id="record-1")), PutOutbox(TOPIC, web.url, "not a posting"))
        async with draining(store), asyncio.timeout(30):
            while await store.read(NextOutbox(TOPIC)) is not None:
                await asyncio.sleep(0.01)
        assert len(web.asked) == 1
    assert await state(store) == "cancelled"


@pytest.mark.requirement("CORE-4.12-5")
async def test_at_most_once_is_attempted_once_whatever_becomes_of_it(store: Store) -> None:
    async with serving(in_turn(always(500), always(200)), tls=False) as web, draining(store):
        await put(store, web.url, "1", guarantee=AT_MOST_ONCE)
        assert await settled(store, "1") == ["failed"]
        await put(store, web.url, "2", guarantee=AT_MOST_ONCE)
        assert await settled(store, "2") == ["delivered"]
    assert ids(web) == ["posting-1", "posting-2"]


async def test_receivers_that_hang_do_not_hold_up_others_and_end_with_the_drain(memory: Store) -> None:
    asked, healed = asyncio.Event(), asyncio.Event()
    opened: list[asyncio.StreamWriter] = []
    closed: list[asyncio.StreamWriter] = []

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(writer)
        asked.set()
        if healed.is_set():
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        await reader.read()
        writer.close()
        closed.append(writer)

    async def all_closed() -> int:
        async with asyncio.timeout(10):
            while len(closed) < len(opened):
                await asyncio.sleep(0.01)
        return len(closed)

    numbers = [f"slow-{number}" for number in range(20)]
    async with await asyncio.start_server(hang, "127.0.0.1", 0) as hanging, serving(always(200), tls=False) as web:
        address = f"http://slow.test:{hanging.sockets[0].getsockname()[1]}/"
        async with draining(memory, allow=("slow.test", HOST)):
            await put(memory, address, *numbers)
            await asked.wait()
            await put(memory, web.url, "1", sender="b" * 64)
            assert await settled(memory) == ["delivered"]
        assert await all_closed() == 8  # one receiver gets no more than its share of places
        healed.set()
        # What was cut off is due again at once, and what was deferred has not used up an attempt.
        async with draining(memory, allow=("slow.test",), attempts=2):
            assert set(await settled(memory, *numbers)) == {"delivered"}
        await all_closed()


async def test_two_processes_share_the_postings(first: Store, second: Store) -> None:
    numbers = [str(number) for number in range(30)]
    async with serving(always(200), tls=False) as web, draining(first), draining(second):
        await put(first, web.url, *numbers)
        assert set(await settled(second, *numbers)) == {"delivered"}
    assert sorted(ids(web)) == sorted(f"posting-{number}" for number in numbers)


CHILD = """
import asyncio, sys
from tests.extensions.messages.parts import delivering
from bespeak.extensions.messages.delivery import Drain
from bespeak.state.store.settings import open_store

async def main():
    store = open_store(sys.argv[1])
    await store.start()
    Drain(store, delivering(), lease=1.0).start()
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.process
@pytest.mark.parametrize(("guarantee", "times", "end"), [("at_least_once", 2, "delivered"), (AT_MOST_ONCE, 1, "sent")])
async def test_killed_posting_is_repeated_if_allowed(shared_place: str, guarantee: str, times: int, end: str) -> None:
    arrived, gate = asyncio.Event(), asyncio.Event()

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        await gate.wait()
        send(writer, 200)

    store = open_store(shared_place)
    await store.start()
    async with serving(answer, tls=False) as web:
        await put(store, web.url, guarantee=guarantee)
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", CHILD, shared_place)
        try:
            async with asyncio.timeout(60):
                await arrived.wait()
        finally:
            child.kill()
            await child.wait()
        gate.set()
        async with draining(store):
            await put(store, web.url, "last")
            assert await settled(store, "last") == ["delivered"]
            if times > 1:
                assert await settled(store) == [end]
        assert await state(store) == end
    await store.close()
    assert [letter_of(asked)["posting_id"] for asked in web.asked].count("posting-1") == times


def test_pauses_between_attempts_grow_up_to_an_hour() -> None:
    assert 0.8 <= backoff(1) <= 1.2 < backoff(3) < backoff(5)
    assert backoff(20) <= 4320


async def test_a_posting_that_is_not_due_waits(memory: Store) -> None:
    async with serving(always(200), tls=False) as web, draining(memory):
        await memory.do(post(web.url, Posting("later", "alert", "x", None), delay=60.0))
        await put(memory, web.url)
        assert await settled(memory) == ["delivered"]
    assert ids(web) == ["posting-1"]


SMTP = SmtpSettings(host="127.0.0.1", sender="desk@acme.example")


def text(recipient: str, letter: dict[str, Any]) -> dict[str, Any]:
    if recipient == "bug":
        raise SystemError
    return {"to": recipient}


async def hang(*_: Any) -> None:
    await asyncio.Event().wait()


CHANNELS = {"sms": f"{__name__}.text", "pager": f"{__name__}.hang"}


@rows(
    "recipients, address, permitted",
    ((), "mailto:ann@acme.example", False),
    (("*",), "mailto:ann@acme.example", True),
    (("acme.example",), "mailto:ann@ACME.example", True),
    (("acme.example",), "https://acme.example/hook", True),
    (("acme.example",), "agtp://acme.example", True),
    (("acme.example",), "mailto:ann@evil-acme.example", False),
    (("acme.example",), "https://acme.example.evil.example/acme.example", False),
    (("*.acme.example",), "https://hooks.acme.example/", True),
    (("*.acme.example",), "https://acme.example/", False),
    (("*.acme.example",), "https://evilacme.example/", False),
    (("ann@acme.example",), "mailto:Ann@acme.example", True),
    (("ann@acme.example",), "mailto:bob@acme.example", False),
    (("+4930123456",), "sms:+4930123456", True),
    (("+4930123456",), "sms:+4930999999", False),
    (("*",), "fax:1", False),
    (("*",), "mailto:nobody", False),
)
def test_agents_send_only_to_whom_operator_lists(recipients: tuple[str, ...], address: str, *, permitted: bool) -> None:
    delivery = delivering(recipients=recipients, smtp=SMTP, channels={"sms": CHANNELS["sms"]})
    assert delivery.permits(address) is permitted


async def test_channels_of_the_operator_deliver_in_time() -> None:
    delivery = delivering(channels=CHANNELS)
    assert await delivery.deliver("sms:1", posting()) == Delivered({"to": "1"})
    assert isinstance(await delivery.deliver("fax:1", posting()), Undeliverable)
    assert (delivery.has("sms"), delivery.has("mailto")) == (True, False)
    delivery = delivering(channels=CHANNELS, timeout=0.1)
    assert isinstance(await delivery.deliver("pager:1", posting()), Retry)
    assert isinstance(await delivering(channels=CHANNELS).try_now("pager:1", posting(), 0.1), Retry)


def test_a_channel_that_cannot_work_stops_the_start() -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        delivering(channels={"sms": "nowhere.send"})
    smtp = SmtpSettings(host="127.0.0.1", sender="a@acme.example", user="a", password="MISSING")
    with pytest.raises(ConfigError, match="MISSING is not set"):
        Delivery(DeliverySettings(smtp=smtp), server_id=SERVER, environment={})


def test_without_settings_nobody_is_listed() -> None:
    delivery = Delivery(None, server_id=SERVER)
    assert not delivery.is_configured
    assert not delivery.permits(f"https://{HOST}/")


async def outcome_of(function: Callable[..., Any]) -> Outcome:
    return await FunctionChannel("sms", function, SERVER).deliver("sms:+4930123456", posting())


async def test_a_function_gets_the_recipient_and_the_letter_and_may_be_async() -> None:
    async def text(recipient: str, letter: dict[str, Any]) -> dict[str, Any]:
        return {"to": recipient, "id": letter["posting_id"]}

    assert await outcome_of(text) == Delivered({"to": "+4930123456", "id": "posting-1"})
    assert await outcome_of(lambda *_: None) == Delivered({})
    assert await outcome_of(lambda *_: {"client": object()}) == Delivered({})


async def test_a_refusal_is_final_and_any_other_exception_is_not(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(*_: Any) -> None:
        raise Refusal("blocked", "The number is blocked.")

    def fail(*_: Any) -> None:
        raise KeyError("secret")

    assert isinstance(await outcome_of(refuse), Undeliverable)
    failed = await outcome_of(fail)
    assert isinstance(failed, Retry)
    assert "secret" not in failed.message
    assert "secret" in caplog.text
    assert await outcome_of(lambda *_: Retry("busy", after=3.0)) == Retry("busy", after=3.0)


@pytest.mark.parametrize("address", ["sms:", "sms:a\nb", "sms:" + "1" * 2000])
def test_an_address_must_be_printable_and_not_too_long(address: str) -> None:
    assert isinstance(FunctionChannel("sms", print, SERVER).locate(address), Undeliverable)
