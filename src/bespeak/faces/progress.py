"""Progress notifications of one call: at most ten a second, always with the latest news, and none after the result.

Items of a stream are never left out. There are at most as many as an answer that is not streamed may have.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextvars import Token
from typing import Final, TypeVar

from bespeak.protocol.exchange.messages import ITEMS, PATIENCE, REPORT, Report
from bespeak.runtime.concurrency import wait_at_most

PATIENT: Final = 3600.0  # seconds for which a client that hears of progress waits
INTERVAL: Final = 0.1  # seconds between two notifications
_LONGEST: Final = 500  # characters of a message
ResultT = TypeVar("ResultT")
_Tokens = tuple[Token[Report | None], Token[Callable[[bytes], None] | None], Token[float | None]]
News = tuple[float, float | None, str | None]
Send = Callable[[float, float | None, str | None], Awaitable[None]]
SendItems = Callable[[list[bytes]], Awaitable[None]]


class Progress:
    """Passes the reports of a handler on to the client of its call."""

    def __init__(self, send: Send, send_items: SendItems | None = None, *, patience: float | None = PATIENT) -> None:
        """Pass reports on with `send`, and items with `send_items`; by default each item is the message of a report.

        `patience` is the number of seconds for which the client waits for the end; None if that is not known.
        """
        self._patience = patience
        self._send = send
        self._send_items = send_items or self._send_each
        self._items: list[bytes] = []  # items that were not sent yet
        self._loop = asyncio.get_running_loop()
        self._news: News | None = None  # report that was not sent yet
        self._done = -math.inf
        self._sending: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self._tokens: _Tokens

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
        self._tokens = self._set()

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._reset(self._tokens)
        await self.end(failed=kind is not None)

    def run(self, step: Callable[[], ResultT]) -> ResultT:
        """Take the reports of handlers that a step calls, while it runs and later."""
        tokens = self._set()
        try:
            return step()
        finally:
            self._reset(tokens)

    def _set(self) -> _Tokens:
        return REPORT.set(self.report), ITEMS.set(self.take_item), PATIENCE.set(self._patience)

    @staticmethod
    def _reset(tokens: _Tokens) -> None:
        REPORT.reset(tokens[0])
        ITEMS.reset(tokens[1])
        PATIENCE.reset(tokens[2])

    def take_item(self, item: bytes) -> None:
        if not self._ended.is_set():
            self._items.append(item)
            self._start()

    async def _send_each(self, items: list[bytes]) -> None:
        for item in items:
            self._done = max(self._done, 0) + 1
            await self._send(self._done, None, item.decode())

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
        self._start()

    def _start(self) -> None:
        if self._sending is None or self._sending.done():
            self._sending = self._loop.create_task(self._run())

    async def _run(self) -> None:
        while self._news is not None or self._items:
            news, self._news, items, self._items = self._news, None, self._items, []
            try:
                if items:
                    await self._send_items(items)
                if news is not None:
                    await self._send(*news)
            except Exception:  # noqa: BLE001 - the client is gone, which ends the call in another way
                self._ended.set()
                return
            await wait_at_most(INTERVAL, self._ended)
