"""Progress before an answer in the lane."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from bespeak.faces.http.asgi import HttpResponse, Message
from bespeak.faces.mcp.lane import TokenProgress
from bespeak.faces.mcp.sessions import Waiting
from bespeak.protocol.exchange.messages import REPORT

pytestmark = pytest.mark.anyio


async def told(token: int | str, *reports: tuple[Any, ...]) -> list[Message]:
    """Let a call report, then answer; return what its client is sent."""
    progress, sent = TokenProgress(token), list[Message]()

    def report() -> None:
        take = REPORT.get()
        assert take is not None
        for one in reports:
            take(*one)

    async def answer() -> HttpResponse:
        async with progress:
            await asyncio.sleep(0)
        return HttpResponse(200, [], b"{}")

    async def send(message: Message) -> None:
        sent.append(message)

    progress.run(report)
    assert REPORT.get() is None
    assert progress.is_told == bool(reports)
    waiting = Waiting(answer(), [])
    progress.follow(waiting)
    await waiting({}, asyncio.Event().wait, send)  # type: ignore[arg-type] # the peer stays
    return sent


async def test_reports_are_notifications_under_the_token_of_the_client() -> None:
    start, first, last = await told("t", (1, 4, "one"))
    assert start["type"] == "http.response.start"
    notification = json.loads(first["body"].partition(b"data: ")[2])
    assert notification["method"] == "notifications/progress"
    assert notification["params"] == {"progressToken": "t", "progress": 1, "total": 4, "message": "one"}
    assert last["body"] == b"event: message\r\ndata: {}\r\n\r\n"


async def test_what_a_report_does_not_say_is_left_out() -> None:
    notification = (await told(0, (0.5, None, None)))[1]["body"].partition(b"data: ")[2]
    assert json.loads(notification)["params"] == {"progressToken": 0, "progress": 0.5}


async def test_an_answer_without_reports_is_not_a_stream() -> None:
    assert [message.get("body") for message in await told(1)] == [None, b"{}"]
