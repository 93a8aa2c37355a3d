"""Progress notifications of one call: at most ten a second, always with the latest news, and none after the result."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import Token
from typing import Final, TypeVar

from bespeak.protocol.exchange.messages import REPORT, Report

INTERVAL: Final = 0.1  # seconds between two notifications
_LONGEST: Final = 500  # characters of a message
ResultT = TypeVar("ResultT")
News = tuple[float, float | None, str | None]
Send = Callable[[float, float | None, str | None], Awaitable[None]]


class Progress:
    """Passes the reports of a handler on to the client of its call."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._news: News | None = None  # report that was not sent yet
        self._done = -math.inf
        self._sending: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self._token: Token[Report | None]

    @property
    def is_told(self) -> bool:
        """True if there is something that the client has been told, or is about to be."""
        return self._sending is not None

    def report(self, done: float, total: float | None, message: str | None) -> None:
        news = (done, total, None if message is None else message[:_LONGEST])
        try:
            inside = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            inside = False
        if inside:
            self._note(news)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._note, news)

    async def __aenter__(self) -> None:
        """Take the reports of handlers that are called inside the block."""
        self._token = REPORT.set(self.report)

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        REPORT.reset(self._token)
        await self.end(failed=kind is not None)

    def run(self, step: Callable[[], ResultT]) -> ResultT:
        """Take the reports of handlers that a step calls, while it runs and later."""
        token = REPORT.set(self.report)
        try:
            return step()
        finally:
            REPORT.reset(token)

    async def end(self, *, failed: bool = False) -> None:
        """Send the last report, unless the call has failed or nobody waits for it. Later ones are dropped."""
        self._ended.set()
        if self._sending is not None:
            if failed:
                self._sending.cancel()
            await asyncio.wait((self._sending,))

    def _note(self, news: News) -> None:
        # The protocol wants progress to increase; steps of a composition each begin anew.
        if self._ended.is_set() or not math.isfinite(news[0]) or news[0] <= self._done:
            return
        self._done, self._news = news[0], news
        if self._sending is None or self._sending.done():
            self._sending = self._loop.create_task(self._run())

    async def _run(self) -> None:
        while self._news is not None:
            news, self._news = self._news, None
            try:
                await self._send(*news)
            except Exception:  # noqa: BLE001 - the client is gone, which ends the call in another way
                self._ended.set()
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(INTERVAL):
                    await self._ended.wait()
