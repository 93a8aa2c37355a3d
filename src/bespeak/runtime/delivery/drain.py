"""The drain of the outbox: attempts postings until they are delivered, have failed or have expired."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from bespeak.errors import StoreError
from bespeak.runtime.delivery.channel import Delivered, Retry, Undeliverable
from bespeak.runtime.delivery.delivery import Delivery
from bespeak.runtime.delivery.posting import AT_MOST_ONCE, DELIVERED, EXPIRED, FAILED, SENT, TOPIC, WAITING, Posting
from bespeak.state.store.command import Command, Conflict
from bespeak.state.store.commands.deliveries import DeferOutbox, MarkRecord, NextOutbox
from bespeak.state.store.commands.outbox import TOPIC as OUTBOX
from bespeak.state.store.commands.outbox import AckOutbox, ClaimOutbox, Message, ReleaseOutbox
from bespeak.state.store.store import Store, level_of

_logger = logging.getLogger(__name__)

_PLACES: Final = 32
"""Attempts at a time."""
_FOR_RECEIVER: Final = 8
"""Attempts at a time for one domain: a receiver that hangs must not take all places."""
_FOR_SENDER: Final = 16
"""Attempts at a time for one sender, however many receivers it names."""
_BUSY: Final = (0.2, 10.0)
"""Seconds after which a posting for a busy receiver or sender is looked at again: more if nothing moves there."""
_MARGIN: Final = 20.0
"""Seconds by which a lease is longer than an attempt."""
_LONGEST_SLEEP: Final = 5.0
"""Seconds after which the outbox is read again, in case a wake-up was lost."""
_SHORTEST_SLEEP: Final = 0.05
"""Seconds to wait for another process that is claiming what is due."""
_PAUSE: Final = 1.0
"""Seconds after a failure of the store."""
_LONGEST_BACKOFF: Final = 3600.0


def backoff(attempts: int) -> float:
    """Return the seconds before the next attempt: 1, 4, 16 and so on up to an hour, and a fifth more or less."""
    return min(4.0 ** (attempts - 1), _LONGEST_BACKOFF) * random.uniform(0.8, 1.2)  # noqa: S311 - not a secret


class Drain:
    """A task that claims postings, and a task for each attempt. Processes on one store share the work."""

    def __init__(
        self,
        store: Store,
        delivery: Delivery,
        *,
        backoff: Callable[[int], float] = backoff,
        lease: float | None = None,
    ) -> None:
        self._store = store
        self._delivery = delivery
        self._backoff = backoff
        self._lease = delivery.settings.timeout + _MARGIN if lease is None else lease
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._attempts: dict[asyncio.Task[bool], Message] = {}
        self._busy: Counter[tuple[str, str]] = Counter()
        self._moved: dict[tuple[str, str], float] = {}
        """When an attempt for a receiver or sender has last begun or succeeded."""

    def start(self) -> None:
        """Start in the running loop; the store must be started."""
        if self._task is None:
            self._store.watch(OUTBOX, self._woken.set)
            self._task = asyncio.get_running_loop().create_task(self._run(), name="bespeak-delivery")

    async def stop(self) -> None:
        """Stop at once. Attempts that are cut off may be repeated by any process."""
        if self._task is None:
            return
        cut_off = dict(self._attempts)
        for task in (self._task, *cut_off):
            task.cancel()
        await asyncio.gather(self._task, *cut_off, return_exceptions=True)
        self._task = None
        try:
            if cut_off:
                await self._store.do(*(ReleaseOutbox(one.position, one.fence) for one in cut_off.values()))
        except StoreError as error:
            _logger.log(level_of(error), "postings that were cut off are tried again in %g s: %s", self._lease, error)

    async def _run(self) -> None:
        while True:
            self._woken.clear()
            try:
                if await self._claim():
                    continue
                due = await self._store.read(NextOutbox(TOPIC))
            except StoreError as error:
                _logger.log(level_of(error), "could not read the outbox; retrying in %g s: %s", _PAUSE, error)
                await asyncio.sleep(_PAUSE)
                continue
            full = len(self._attempts) >= _PLACES  # the end of an attempt wakes
            wait = _LONGEST_SLEEP if due is None or full else min(max(due, _SHORTEST_SLEEP), _LONGEST_SLEEP)
            try:
                async with asyncio.timeout(wait):
                    await self._woken.wait()
            except TimeoutError:
                pass

    async def _claim(self) -> bool:
        """Begin attempts for what is due; return True if there may be more."""
        free = _PLACES - len(self._attempts)
        if not free:
            return False
        claimed = await self._store.do(ClaimOutbox(TOPIC, free, self._lease))
        assert not isinstance(claimed, Conflict)
        deferred = []
        for message in claimed[0]:
            delay = self._begin(message)
            if delay is not None:
                deferred.append(DeferOutbox(message.position, message.fence, delay))
        if deferred:
            await self._store.do(*deferred)
        return bool(claimed[0])

    def _begin(self, message: Message) -> float | None:
        """Begin an attempt; or return the seconds to wait, if the receiver or the sender has enough of them."""
        posting = _read(message)
        keys = {("receiver", self._receiver(message)): _FOR_RECEIVER, ("sender", posting.sender): _FOR_SENDER}
        now = time.monotonic()
        for key, most in keys.items():
            if self._busy[key] >= most:
                return min(max(now - self._moved[key], _BUSY[0]), _BUSY[1])
        task = asyncio.get_running_loop().create_task(self._attempt(message, posting), name="bespeak-attempt")
        self._attempts[task] = message
        self._busy.update(keys.keys())
        self._moved.update(dict.fromkeys(keys, now))

        def end(task: asyncio.Task[bool]) -> None:
            del self._attempts[task]
            for key in keys:
                self._busy[key] -= 1
                if not self._busy[key]:
                    del self._busy[key], self._moved[key]
                elif not task.cancelled() and task.result():
                    self._moved[key] = time.monotonic()
            self._woken.set()

        task.add_done_callback(end)
        return None

    def _receiver(self, message: Message) -> str:
        domain = self._delivery.locate(message.recipient)
        return domain if isinstance(domain, str) and domain else message.recipient.partition(":")[0]

    async def _attempt(self, message: Message, posting: Posting) -> bool:
        """Attempt a delivery; return True if it has succeeded."""
        try:
            if posting.expires is not None and posting.expires <= time.time():
                await self._finish(message, posting, EXPIRED)
                return False
            if posting.guarantee == AT_MOST_ONCE:
                return await self._attempt_once(message, posting)
            return await self._attempt_again(message, posting)
        except StoreError as error:
            _logger.log(level_of(error), "%s is tried again in %g s: %s", posting.posting_id, self._lease, error)
            return False

    async def _attempt_once(self, message: Message, posting: Posting) -> bool:
        if not await self._finish(message, posting, SENT):
            return False
        outcome = await self._delivery.deliver(message.recipient, posting)
        if not isinstance(outcome, Delivered):
            self._report(posting, message, outcome)
        if posting.record_id is not None:
            state = DELIVERED if isinstance(outcome, Delivered) else FAILED
            await self._store.do(MarkRecord(posting.record_id, SENT, state))
        return isinstance(outcome, Delivered)

    async def _attempt_again(self, message: Message, posting: Posting) -> bool:
        outcome = await self._delivery.deliver(message.recipient, posting)
        if isinstance(outcome, Delivered):
            return await self._finish(message, posting, DELIVERED)
        if isinstance(outcome, Undeliverable) or message.attempts >= self._delivery.settings.attempts:
            self._report(posting, message, outcome)
            await self._finish(message, posting, FAILED)
        else:
            delay = min(max(self._backoff(message.attempts), outcome.after or 0.0), _LONGEST_BACKOFF)
            self._report(posting, message, outcome, delay)
            await self._store.do(ReleaseOutbox(message.position, message.fence, delay))
        return False

    async def _finish(self, message: Message, posting: Posting, state: str) -> bool:
        """Remove a posting and change its record; return False if another process has claimed it meanwhile."""
        commands: list[Command] = [AckOutbox(message.position, message.fence)]
        if posting.record_id is not None:
            commands.append(MarkRecord(posting.record_id, WAITING, state))
        return not isinstance(await self._store.do(*commands), Conflict)

    def _report(
        self, posting: Posting, message: Message, outcome: Retry | Undeliverable, delay: float | None = None
    ) -> None:
        then = "It is not tried again." if delay is None else f"It is tried again in {delay:.0f} s."
        told = f"{outcome.message} {outcome.detail}".strip()
        # Without the rest of the address: paths of webhooks hold secrets, and mailboxes are personal.
        place = (posting.posting_id, self._receiver(message), message.attempts)
        level = logging.WARNING if delay is None else logging.INFO
        _logger.log(level, "%s to %s, attempt %d: %s %s", *place, told, then)


def _read(message: Message) -> Posting:
    try:
        return msgspec.json.decode(message.payload, type=Posting)
    except msgspec.MsgspecError as error:
        _logger.error("message %d of the outbox is not a posting: %s", message.position, error)
        # It has expired, so that it is removed.
        return Posting("", "", "", None, expires=0.0)
