"""Handlers raise refusals; the same refusal has one status and one code in all methods."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.service import AGENT
from tests.stateful import StatefulBench, keeping

from bespeak.contract.delivery import DeliverySettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.handling import (
    RefusedError,
    check_size,
    effects,
    handler,
    invalid,
    passed,
    read_future,
    read_time,
    refuse_conflict,
)
from bespeak.state.store.store import Conflict

OTHER = "b" * 64
METHODS = ("SEND", "ALERT", "BROADCAST", "REPORT", "ROUTE", "REGISTER", "SUBMIT", "MONITOR", "PUBLISH", "PAUSE")
FULL = Refused(409, "full", "There is no room.")


def deliver(recipient: str, letter: dict[str, Any]) -> None:
    """Take every message."""


def serve() -> Any:
    delivery = DeliverySettings(channels={"sms": f"{__name__}.deliver"}, recipients=("acme.example",))
    return keeping(methods=METHODS, document=ServerDocument(delivery=delivery))


async def refused(bench: StatefulBench, method: str, body: dict[str, Any]) -> tuple[int, str]:
    reply = await bench.send(method, "/", body, authority_scope="messages:send")
    return reply.status, reply.error["code"]


UNLISTED = {
    "SEND": {"channel": "sms", "recipient": "+4930", "content": "x"},
    "NOTIFY": {"recipient": "sms:+4930", "content": "x"},
    "ALERT": {"recipient": "sms:+4930", "message": "x", "severity": "high"},
    "BROADCAST": {"audience": "sms:+4930", "content": "x"},
    "REPORT": {"report_type": "workflows", "scope": "all", "recipient": "sms:+4930"},
    "ROUTE": {"payload": {}, "criteria": {}, "candidates": [{"service": "agtp://evil.example", "method": "FETCH"}]},
    "REGISTER": {"entity_type": "subscription", "data": {"channel": "news", "callback": "sms:+4930"}},
    "SUBMIT": {"target": "queue", "payload": {}, "callback": "sms:+4930"},
    "MONITOR": {"target": "server", "events": ["health_changed"], "callback": "sms:+4930"},
}


@pytest.mark.anyio
@pytest.mark.parametrize("method", UNLISTED)
async def test_an_address_that_the_operator_does_not_list_is_403(method: str) -> None:
    async with serve() as bench:
        assert await refused(bench, method, UNLISTED[method]) == (403, "address-not-listed")


TIMED = {
    "NOTIFY": {"recipient": OTHER, "content": "x", "expiry": ""},
    "ALERT": {"recipient": OTHER, "message": "x", "severity": "high", "acknowledge_by": ""},
    "BROADCAST": {"audience": OTHER, "content": "x", "expiry": ""},
    "PUBLISH": {"channel": "news", "content": "x", "schedule_at": ""},
    "PAUSE": {"workflow_id": "chain-x", "resume_at": ""},
    "SUSPEND": {"session_id": "s-1", "resume_by": ""},
}


@pytest.mark.anyio
@pytest.mark.parametrize("text", ["soon", "2001-01-01T00:00:00Z"])
@pytest.mark.parametrize("method", TIMED)
async def test_an_unreadable_or_past_time_is_400(method: str, text: str) -> None:
    async with serve() as bench:
        body = {name: value or text for name, value in TIMED[method].items()}
        assert await refused(bench, method, body) == (400, "invalid-time")


OWNED = {
    "NOTIFY": {"recipient": "own", "content": "x"},
    "ALERT": {"recipient": "own", "message": "x", "severity": "high"},
    "BROADCAST": {"audience": "own", "content": "x"},
    "PUBLISH": {"channel": "own", "content": "x"},
}


@pytest.mark.anyio
@pytest.mark.parametrize("method", OWNED)
async def test_a_channel_that_somebody_else_owns_is_403(method: str) -> None:
    async with serve() as bench:
        await bench.send("REGISTER", "/", {"entity_type": "channel", "data": {"channel": "own"}}, agent=OTHER)
        assert await refused(bench, method, OWNED[method]) == (403, "channel-refused")
        await bench.send("REGISTER", "/", {"entity_type": "subscription", "data": {"channel": "own"}}, agent=AGENT)
        assert await refused(bench, method, OWNED[method]) == (403, "channel-refused")


def refusal_of(function: Any, *args: Any, **more: Any) -> Refused:
    with pytest.raises(RefusedError) as raised:
        function(*args, **more)
    return raised.value.refused


@pytest.mark.anyio
async def test_a_refusal_that_is_raised_is_the_answer() -> None:
    def refuse(call: Any) -> None:
        passed(FULL)

    async def refuse_later(call: Any) -> None:
        refuse(call)

    call: Any = None
    assert handler(refuse)(call) is FULL
    assert await handler(refuse_later)(call) is FULL
    assert passed("found") == "found"


def test_an_invalid_input_names_its_member() -> None:
    found = invalid("resume_by", "is over.").refused
    assert (found.status, found.code, found.message) == (422, "invalid-resume-by", "`resume_by` is over.")
    check_size("context", 1024, 1024)
    found = refusal_of(check_size, "context", 1025, 1024)
    assert (found.status, found.code, found.details["field"]) == (413, "context-too-large", "/context")


def test_a_time_is_read_or_refused_by_its_member() -> None:
    assert read_time({}, "deadline") is None
    assert read_time({"deadline": "1970-01-01T00:01:00Z"}, "deadline") == 60.0
    found = refusal_of(read_time, {"deadline": "soon"}, "deadline")
    assert (found.status, found.code, found.details) == (400, "invalid-time", {"field": "/deadline"})


def test_a_time_in_the_future_is_at_most_a_year_away() -> None:
    now = int(time.time())
    assert read_future({"expiry": write_instant(now + 60)}, "expiry") == now + 60
    assert "in the past" in refusal_of(read_future, {"expiry": write_instant(now - 60)}, "expiry").message
    assert "a year away" in refusal_of(read_future, {"expiry": write_instant(now + 400 * 86400)}, "expiry").message


def test_conflicts_are_a_table() -> None:
    table = {"full": FULL, "": lambda found: Refused(409, "other", f"It is {found['state']}.")}
    assert refuse_conflict(Conflict("full"), table) is refuse_conflict(Conflict("x"), FULL) is FULL
    assert refuse_conflict(Conflict("changed", {"state": "done"}), table).message == "It is done."
    made = effects([], lambda results: {"count": len(results)}, table)
    assert made.answer(Conflict("full")) is FULL
    assert made.answer([1, 2]).result == {"count": 2}  # type: ignore[union-attr]
