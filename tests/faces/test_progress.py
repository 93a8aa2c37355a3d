"""Progress and cancellation: with the SDK's client on both transports and in both eras."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from tests.faces.mcp.tools import Survey, connected_to, opened
from tests.service import AGENT

from bespeak.faces.progress import Progress
from bespeak.protocol.exchange.messages import REPORT
from bespeak.runtime.concurrency import running_threads

pytestmark = pytest.mark.anyio
WRITER = {"agent_id": AGENT, "authority_scope": "rooms:read, rooms:write"}
News = tuple[float, float | None, str | None]


class Listener:
    """A client that hears of progress."""

    def __init__(self) -> None:
        self.heard: list[News] = []

    async def __call__(self, done: float, total: float | None, message: str | None) -> None:
        self.heard.append((done, total, message))


@pytest.mark.parametrize("name", ["analyze_halls", "analyze_cellars"])
async def test_progress_reaches_the_client_before_the_result(way: str, era: str, name: str) -> None:
    listener = Listener()
    async with opened(Survey(), way, era) as client:
        result = await client.call_tool(name, {}, progress_callback=listener)
    assert not result.is_error
    done = [news[0] for news in listener.heard]
    assert done == sorted(set(done))
    assert listener.heard[-1][:2] == (Survey.STEPS, Survey.STEPS)


async def test_progress_without_a_listener_is_not_sent(way: str, era: str) -> None:
    async with opened(Survey(), way, era) as client:
        assert (await client.call_tool("analyze_halls", {})).structured_content == {"halls": Survey.STEPS}


async def test_a_cancelled_call_cancels_its_handler(way: str, era: str, caplog: pytest.LogCaptureFixture) -> None:
    survey = Survey()
    listener = Listener()
    async with opened(survey, way, era) as client:
        calling = asyncio.create_task(client.call_tool("modify_halls", {}, progress_callback=listener))
        await asyncio.wait_for(survey.waiting.wait(), 20)
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        await asyncio.wait_for(survey.cancelled.wait(), 20)
        again = await client.call_tool("analyze_halls", {})
    assert not again.is_error
    assert "MODIFY /halls was cancelled before it was answered" in caplog.text


async def test_the_result_of_a_cancelled_handler_in_a_thread_is_not_sent(way: str, era: str) -> None:
    survey = Survey()
    listener = Listener()
    async with opened(survey, way, era) as client:
        calling = asyncio.create_task(client.call_tool("modify_cellars", {}, progress_callback=listener))
        await asyncio.wait_for(survey.waiting.wait(), 20)
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        survey.left.set()
        assert await asyncio.to_thread(survey.returned.wait, 20)
        assert (await client.call_tool("analyze_halls", {})).structured_content == {"halls": Survey.STEPS}
    assert listener.heard == []
    assert running_threads() == 0


async def test_a_client_that_leaves_cancels_its_calls(era: str) -> None:
    survey = Survey()
    async with survey.on_http() as (url, _):
        async with connected_to(url, era, **WRITER) as client:
            calling = asyncio.create_task(client.call_tool("modify_halls", {}))
            await asyncio.wait_for(survey.waiting.wait(), 20)
            calling.cancel()
        await asyncio.wait_for(survey.cancelled.wait(), 20)


# Without a client.


async def test_many_reports_are_few_notifications_and_the_last_is_always_sent() -> None:
    sent: list[News] = []

    async def send(*news: Any) -> None:
        sent.append(news)

    async with Progress(send):
        report = REPORT.get()
        assert report is not None
        for number in range(1000):
            report(number, 1000, None)
            await asyncio.sleep(0)
    assert (sent[0][0], sent[-1]) == (0, (999, 1000, None))
    assert len(sent) < 100
    assert REPORT.get() is None


async def test_progress_that_does_not_increase_is_dropped_and_a_client_that_is_gone_disturbs_nothing() -> None:
    sent: list[News] = []

    async def send(*news: Any) -> None:
        sent.append(news)

    progress = Progress(send)
    async with progress:
        for done in (2, 1, 2, math.nan, math.inf):
            progress.report(done, None, "x" * 9000)
    progress.report(3, None, None)
    assert [(done, len(message or "")) for done, _, message in sent] == [(2, 500)]

    async def send(*_: Any) -> None:
        raise ConnectionResetError

    progress = Progress(send)
    async with progress:
        progress.report(1, None, None)
        await asyncio.sleep(0)
        progress.report(2, None, None)


async def test_a_call_that_fails_sends_no_more() -> None:
    async def send(*_: Any) -> None:
        await asyncio.Event().wait()

    async def fail() -> None:
        progress = Progress(send)
        async with progress:
            progress.report(1, None, None)
            await asyncio.sleep(0)
            raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        await fail()
