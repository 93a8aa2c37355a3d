"""`Agent` and `SyncAgent`: the agents of users, over addresses and targets alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bespeak.agent.acting.agent import ActingAgent
from bespeak.agent.acting.synchronous import BlockingAgent
from bespeak.app.server.connect import connect

if TYPE_CHECKING:
    from bespeak.app.authoring.app import App


class Agent(ActingAgent):
    """Acts on instructions in words. Write `async with bespeak.Agent(["agtp://hotel.example"]) as agent:`."""

    opener = staticmethod(connect)


class SyncAgent(BlockingAgent):
    """An Agent with blocking methods and the same options. Write `with bespeak.SyncAgent([...]) as agent:`."""

    def __init__(self, services: Iterable[App | str | Path] | Mapping[str, App | str | Path], **options: Any) -> None:
        super().__init__(Agent(services, **options))
