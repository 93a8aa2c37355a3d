"""The extension: reading of collections and resources, and the index of what agents have imported."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from bespeak.errors import StoreError
from bespeak.extensions.acquire.analyze import analyze
from bespeak.extensions.acquire.methods import fetch, find, scan, search
from bespeak.extensions.acquire.store import TOPIC, IndexResources, MarkUnindexed
from bespeak.runtime.concurrency import cancel_tasks
from bespeak.runtime.extension import Extension, Opening
from bespeak.state.store.store import Conflict, Store, level_of

_logger = logging.getLogger(__name__)
_AT_ONCE: Final = 500  # resources of one transaction: other writers wait for it
_PAUSE: Final = 5.0  # seconds after a failure of the store


class Indexer:
    """Indexes the resources of large imports, some at a time, in any process of the server."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._store.watch(TOPIC, self._woken.set)
        self._task = asyncio.get_running_loop().create_task(self._run(), name="bespeak-index")

    async def stop(self) -> None:
        await cancel_tasks(self._task)

    async def _run(self) -> None:
        while True:
            try:
                await self._store.do(MarkUnindexed())
                while True:
                    self._woken.clear()
                    done = await self._store.do(IndexResources(_AT_ONCE))
                    if isinstance(done, Conflict) or not done[0]:
                        await self._woken.wait()
            except StoreError as error:
                _logger.log(level_of(error), "could not index resources; trying again in %g s: %s", _PAUSE, error)
                await asyncio.sleep(_PAUSE)


def _open(opening: Opening) -> None:
    if opening.store is not None:
        indexer = Indexer(opening.store)
        opening.on_run(indexer.start)
        opening.on_stop(indexer.stop)


acquire: Final = Extension(
    name="acquire",
    methods={"FETCH": fetch, "SEARCH": search, "SCAN": scan, "FIND": find, "ANALYZE": analyze},
    open=_open,
)
