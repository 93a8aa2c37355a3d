"""Progress of a call in the fast lane, for a client that wants to be told of it under a token."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from bespeak.faces.mcp.waiting import Waiting
from bespeak.faces.progress import Progress

_ENCODE: Final = msgspec.json.Encoder().encode


class TokenProgress(Progress):
    """Sends notifications before the answer that a call waits for."""

    def __init__(self, token: int | str) -> None:
        super().__init__(self._notify)
        self._name = token
        self._waiting: asyncio.Future[Waiting] = asyncio.get_running_loop().create_future()

    def follow(self, waiting: Waiting) -> None:
        """Send notifications before an answer."""
        self._waiting.set_result(waiting)

    async def _notify(self, done: float, total: float | None, message: str | None) -> None:
        news = {"progressToken": self._name, "progress": done, "total": total, "message": message}
        params = {name: value for name, value in news.items() if value is not None}
        notification = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        await (await self._waiting).notify(_ENCODE(notification))
