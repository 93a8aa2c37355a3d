"""Standard methods that a handler adds to its call: `context.notify` and its siblings."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.messaging import BOB, contents, inbox
from tests.service import build, make_endpoint
from tests.stateful import audited_backend, keeping

from bespeak import Context, Refusal
from bespeak.contract.handler import RegisteredFunction
from bespeak.runtime.call import MOST_JOINED

anyio_backend = audited_backend
pytestmark = pytest.mark.anyio

METHODS = ("ALERT", "PUBLISH", "CHAIN")


def telling(add: Callable[[Context], None], *, threaded: bool = False) -> Any:
    """Return an endpoint whose handler adds methods to its call."""

    def book(context: Context) -> dict[str, Any]:
        add(context)
        if context.input.get("refuse"):
            raise Refusal("full", "All rooms are taken.")
        return {"room": "12"}

    made = make_endpoint(
        "BOOK", "/room", book, properties={"refuse": {"type": "boolean"}}, errors=("full",), impact="irreversible"
    )
    return replace(made, handler=RegisteredFunction(function="tests.book", target=book)) if threaded else made


@pytest.mark.parametrize("threaded", [False, True])
async def test_what_a_handler_adds_is_done_once_with_its_answer(*, threaded: bool) -> None:
    def add(context: Context) -> None:
        context.notify(BOB, {"room": "12"})
        context.alert(BOB, "high", "A room was booked.")
        context.publish("bookings", {"room": "12", "task": context.task_id})

    async with keeping(telling(add, threaded=threaded), methods=METHODS) as bench:
        for _ in range(2):
            reply = await bench.send("BOOK", "/room", {}, idempotency_key="k-1")
            assert (reply.status, reply.json) == (200, {"room": "12"})
        assert {message["kind"] for message in await inbox(bench)} == {"notification", "alert"}
        assert [row for row in await contents(bench) if "publication" in row]
        assert (await bench.send("BOOK", "/room", {}, task_id="t-2")).status == 200
        assert len(await inbox(bench)) == 4


async def test_a_conflict_of_one_method_undoes_all_of_them(caplog: pytest.LogCaptureFixture) -> None:
    def add(context: Context) -> None:
        context.notify(BOB, "hello")
        context.publish("bookings", "the same every time")

    async with keeping(telling(add), methods=METHODS) as bench:
        assert (await bench.send("BOOK", "/room", {})).status == 200
        with caplog.at_level(logging.ERROR):
            assert (await bench.send("BOOK", "/room", {})).status == 500
        assert "has added NOTIFY or PUBLISH, which is refused: the store answers 'exists'" in caplog.text
        assert len(await inbox(bench)) == 1


async def test_a_call_that_is_refused_sends_nothing() -> None:
    async with keeping(telling(lambda context: context.notify(BOB, "hello")), methods=METHODS) as bench:
        assert (await bench.send("BOOK", "/room", {"refuse": True})).status == 422
        assert await inbox(bench) == []


async def test_the_service_itself_sends_for_anonymous_callers() -> None:
    async with keeping(telling(lambda context: context.notify(BOB, "hello")), methods=METHODS) as bench:
        assert (await bench.send("BOOK", "/room", {}, agent=None)).status == 200
        (message,) = await inbox(bench)
        assert message["sender"] == bench.bench.assembled.registrar.service.identity.server_id


async def test_a_step_of_a_workflow_sends_what_its_handler_adds() -> None:
    async with keeping(telling(lambda context: context.notify(BOB, "hello")), methods=METHODS) as bench:
        reply = await bench.send("CHAIN", "/", {"steps": [{"method": "BOOK", "path": "/room"}]})
        assert reply.json["result"]["status"] == "completed", reply.json
        assert len(await inbox(bench)) == 1


async def test_a_method_that_is_refused_fails_the_call_and_undoes_all_of_it(caplog: pytest.LogCaptureFixture) -> None:
    def add(context: Context) -> None:
        context.notify(BOB, "hello")
        context.alert("nobody-here", "high", "A room was booked.")

    async with keeping(telling(add), methods=METHODS) as bench:
        with caplog.at_level(logging.ERROR):
            reply = await bench.send("BOOK", "/room", {}, idempotency_key="k-1")
        assert (reply.status, reply.error["code"]) == (500, "server-error")
        assert "BOOK /room has added ALERT, which is refused" in caplog.text
        assert await inbox(bench) == []


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda context: context.alert(BOB, "urgent", "x"), "ALERT does not take these parameters: /severity"),
        (
            lambda context: context.send("email", "ann@acme.example", "x"),
            "SEND cannot be carried out: .* does not enable",
        ),
        (lambda context: [context.notify(BOB, "x") for _ in range(MOST_JOINED + 1)], "a call may add 100 methods"),
    ],
)
async def test_what_cannot_be_added_is_an_error_of_the_handler(
    add: Callable[[Context], None], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with keeping(telling(add), methods=METHODS) as bench:
        with caplog.at_level(logging.ERROR):
            assert (await bench.send("BOOK", "/room", {})).status == 500
        assert await inbox(bench) == []
    assert re.search(message, "\n".join(str(one.exc_info[1]) for one in caplog.records if one.exc_info))


async def test_without_a_store_nothing_can_be_added(caplog: pytest.LogCaptureFixture) -> None:
    bench = build(telling(lambda context: context.notify(BOB, "x")))
    with caplog.at_level(logging.ERROR):
        assert bench.send("BOOK", "/room", {}).status == 500
    assert any(one.exc_info and "a store to keep state in" in str(one.exc_info[1]) for one in caplog.records)
