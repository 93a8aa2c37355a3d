"""The paused tasks of a server, in memory: read again whenever the store changes, so that calls need no look-up.

This process reads its own changes before it acknowledges them. Other processes follow as fast as the store notifies
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bespeak.errors import StoreError
from bespeak.protocol.exchange.task_id import stored_task_id
from bespeak.runtime.follower import Follower
from bespeak.state.store.commands.tasks import TOPIC, ListPausedTasks, PausedTask
from bespeak.state.store.store import Store

MOST: Final = 4096
"""Maximum number of tasks in memory. If more are paused, the store is asked for each call with a Task-ID."""


class Tasks:
    """The tasks that wait for a decision, or that a decision has stopped (core 4.9)."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._paused: Mapping[tuple[str, str], PausedTask] = {}
        self._follower = Follower(TOPIC, self._take_in)
        self.complete = True
        """True if all of them are in memory."""
        self.watched = False
        """True if any task may be paused."""

    def get(self, agent_id: str, task_id: str) -> PausedTask | None:
        """Return the task of an agent if it is paused and in memory."""
        return self._paused.get((agent_id, stored_task_id(task_id)))

    async def follow(self, store: Store) -> None:
        """Load the paused tasks of a store, now and whenever they change. Raises StoreError if that fails now."""
        await self._follower.follow(store)

    async def refresh(self) -> None:
        """Load the changes of the store. If that fails, the store is asked for each call until it succeeds."""
        try:
            await self._follower.refresh()
        except StoreError:
            self.complete, self.watched = False, True

    async def close(self) -> None:
        """Cancel pending work."""
        await self._follower.close()

    async def _take_in(self, store: Store) -> None:
        listed: list[PausedTask] = await store.read(ListPausedTasks(self._most + 1))
        self._paused = {(task.agent_id, task.task_id): task for task in listed}
        self.complete, self.watched = len(listed) <= self._most, bool(listed)
