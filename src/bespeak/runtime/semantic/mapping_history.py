"""What has come of mapped calls: counted in memory, and added to the store every few seconds (IoA 7.2)."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from bespeak.errors import StoreError
from bespeak.protocol import status
from bespeak.runtime.exchange import Exchange
from bespeak.runtime.semantic.layer import Meaning
from bespeak.state.store.commands.mapped_calls import CountMappedCalls, MappedCalls
from bespeak.state.store.store import Store

PERIOD: Final = 5.0
"""Seconds for which calls are counted before they are stored together."""
MOST_MAPPINGS: Final = 1_000
"""Mappings that are counted in one period."""
LONGEST: Final = 500
"""Most bytes of an IRI that is counted: a longer one does not fit into an index."""

_FAILURES: Final = frozenset({status.TIMEOUT, status.SERVER_ERROR, status.DELEGATION_FAILURE})
"""What a wrong mapping may lead to. A refusal says nothing about it: a missing scope, a reused key, a busy server."""

_logger = logging.getLogger(__name__)


class MappingHistory:
    """A subscriber of exchanges. Calls that were counted in the last seconds before a crash are not stored."""

    def __init__(self) -> None:
        self._store: Store | None = None
        self._counts: dict[tuple[str, str], list[int]] = {}
        self._flushing: asyncio.Task[None] | None = None

    def follow(self, store: Store) -> None:
        """Store what is counted from now on."""
        self._store = store

    def __call__(self, exchange: Exchange) -> None:
        """Take in a call of an endpoint; built-in methods do not provide what a mapping leads to."""
        meaning: Meaning | None = exchange.call.request.semantic
        if self._store is None or meaning is None or not meaning.outcome.mappings:
            return
        route, answer = exchange.call.route, exchange.response
        succeeded = status.is_success(answer.status)
        if route is None or route.builtin or exchange.replayed or not (succeeded or answer.status in _FAILURES):
            return
        steps = (step for used in meaning.outcome.mappings for step in used.translation.steps)
        for pair in {(step.source, step.target) for step in steps}:
            if pair in self._counts or (len(self._counts) < MOST_MAPPINGS and _fits(pair)):
                self._counts.setdefault(pair, [0, 0])[not succeeded] += 1
        if self._counts and self._flushing is None:
            self._flushing = asyncio.get_running_loop().create_task(self._flush_later(), name="mapping-history")

    async def flush(self) -> None:
        """Store what was counted; what a store that fails has not taken is dropped, so that nothing counts twice."""
        counts, self._counts = self._counts, {}
        if self._store is None or not counts:
            return
        try:
            await self._store.do(CountMappedCalls(tuple(MappedCalls(*pair, *two) for pair, two in counts.items())))
        except StoreError as error:
            _logger.warning("the history of %d mappings could not be stored: %s", len(counts), error)

    async def close(self) -> None:
        """Store what is left."""
        if self._flushing is not None:
            self._flushing.cancel()
            await asyncio.gather(self._flushing, return_exceptions=True)
            self._flushing = None
        await self.flush()

    async def _flush_later(self) -> None:
        while self._counts:
            await asyncio.sleep(PERIOD)
            await self.flush()
        self._flushing = None


def _fits(pair: tuple[str, str]) -> bool:
    return all(len(iri.encode(errors="replace")) <= LONGEST for iri in pair)
