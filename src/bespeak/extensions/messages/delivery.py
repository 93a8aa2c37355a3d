"""Delivery of the outbox: postings are attempted until they are delivered, have failed or have expired."""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from bespeak.contract.handler import Refusal
from bespeak.errors import ConfigError, StoreError
from bespeak.extensions.messages.posting import AT_MOST_ONCE, DELIVERED, EXPIRED, FAILED, SENT, TOPIC, WAITING, Posting
from bespeak.extensions.messages.settings import DeliverySettings, SmtpSettings
from bespeak.extensions.messages.store import OUTBOX_TOPIC as OUTBOX
from bespeak.extensions.messages.store import AckOutbox, ClaimOutbox, NextOutbox, OutboxMessage, ReleaseOutbox, SetState
from bespeak.extensions.messages.transports import (
    AgtpNotice,
    Delivered,
    Outcome,
    Retry,
    Transport,
    Undeliverable,
    Webhook,
)
from bespeak.protocol.address_guard import AddressGuard, AllowedHosts, Resolver
from bespeak.protocol.wire.messages import ResponseMessage
from bespeak.runtime.bindings.function import describe_failure, resolve_function
from bespeak.runtime.concurrency import cancel_tasks, run_in_thread
from bespeak.runtime.identity.signer import Signer
from bespeak.state.store.store import Command, Conflict, Store, level_of

_logger = logging.getLogger(__name__)

_LONGEST: Final = 1000


class FunctionChannel:
    """Calls `function(recipient, letter)`.

    The letter is what a webhook would receive. A mapping or None means that it is delivered; Refusal that it cannot be;
    any other exception that it may be tried again. Delivered, Retry and Undeliverable may be returned as well. A
    function that is not async runs in a thread, which outlives the attempt if the function does not return in time.
    """

    def __init__(self, name: str, function: Callable[..., Any], server_id: str) -> None:
        self._name = name
        self._function = function
        self._server_id = server_id

    def locate(self, address: str) -> str | Undeliverable:
        """Return an empty text: such addresses have no domain."""
        recipient = address.partition(":")[2]
        usable = 0 < len(recipient) <= _LONGEST and recipient.isprintable()
        return "" if usable else Undeliverable(f"{recipient[:80]!r} is not a valid address for {self._name}.")

    async def deliver(self, address: str, posting: Posting) -> Outcome:
        arguments = address.partition(":")[2], posting.letter(address, self._server_id)
        try:
            if inspect.iscoroutinefunction(self._function):
                result = await self._function(*arguments)
            else:
                result = await run_in_thread(self._function, *arguments)
        except Refusal as refusal:
            return Undeliverable(f"{self._name} refuses the message: {refusal.message or refusal.name}.")
        except Exception as error:  # noqa: BLE001 - an operator's function may fail in any way
            _logger.warning("%s", describe_failure(f"the channel {self._name}", error))
            return Retry(f"{self._name} failed.")
        if isinstance(result, Delivered | Retry | Undeliverable):
            return result
        try:
            return Delivered(msgspec.json.decode(msgspec.json.encode(result)) if isinstance(result, Mapping) else {})
        except (TypeError, ValueError, RecursionError) as error:
            _logger.warning("the confirmation of the channel %s cannot be written as JSON: %s", self._name, error)
            return Delivered()


_NO_CHANNEL: Final = Undeliverable("This server has no channel for such addresses.")
_MOST_AT_ONCE: Final = 32  # attempts that callers wait for, in one process


class Delivery:
    """Delivers to addresses outside.

    Private addresses are refused unless the operator allows them. A name is resolved once for each attempt, and the
    connection uses exactly the addresses that were checked.
    """

    def __init__(
        self,
        settings: DeliverySettings | None,
        *,
        server_id: str,
        signer: Signer | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
        resolve: Resolver | None = None,
    ) -> None:
        """Open the channels. Raises ConfigError if one of them cannot work."""
        self.is_configured = settings is not None  # True if the operator has chosen to send messages
        self.settings = settings = settings or DeliverySettings()
        self._places = asyncio.Semaphore(_MOST_AT_ONCE)
        allowed = AllowedHosts(settings.allow)
        guard = AddressGuard(allowed, networks=allowed.networks, resolve=resolve)
        self.web = web = Webhook(guard, allowed, settings.ca_file, server_id, signer)
        self._notice = AgtpNotice(guard, settings.ca_file, server_id, settings.agent_id, signer)
        self._channels: dict[str, Transport] = {"https": web, "http": web, "agtp": self._notice}
        if settings.smtp is not None:
            self._channels["mailto"] = _open_mail(settings.smtp, settings, server_id, environment)
        for name, dotted in settings.channels.items():
            function = resolve_function(dotted)
            if isinstance(function, str):
                raise ConfigError(f"[delivery.channels] {name}: {dotted!r} cannot be used: {function}")
            self._channels[name] = FunctionChannel(name, function, server_id)

    def add(self, channel: Transport, *schemes: str) -> None:
        """Add a channel of the server's own."""
        self._channels |= dict.fromkeys(schemes, channel)

    def has(self, scheme: str) -> bool:
        return scheme in self._channels

    def locate(self, address: str) -> str | Undeliverable:
        """Return the domain of an address that a channel takes, or why none does."""
        channel = self._channels.get(_scheme(address))
        return _NO_CHANNEL if channel is None else channel.locate(address)

    def permits(self, address: str) -> bool:
        """Return True if a channel takes the address, and the operator lists it or its domain as a recipient."""
        domain = self.locate(address)
        if isinstance(domain, Undeliverable):
            return False
        bare = address.partition(":")[2].lower()
        for entry in self.settings.recipients:
            below = entry.startswith("*.") and domain.endswith(entry[1:])
            if entry == "*" or below or entry in (address.lower(), bare) or (domain and entry == domain):
                return True
        return False

    async def try_now(self, address: str, posting: Posting, seconds: float) -> Outcome:
        """Make one attempt while a caller waits. Only some can be made at a time, whatever the receivers do."""
        try:
            async with asyncio.timeout(seconds), self._places:
                return await self.deliver(address, posting)
        except TimeoutError:
            return Retry(f"The receiver did not answer within {seconds:g} s.")

    async def call(
        self, address: str, method: str, path: str, task_id: str, body: bytes
    ) -> ResponseMessage | Retry | Undeliverable:
        """Call an endpoint of an AGTP server that the operator lists, under the server's own identity."""
        if _scheme(address) != "agtp" or not self.permits(address):
            return Undeliverable("The operator does not list the address as a recipient.")
        seconds = self.settings.timeout
        try:
            async with asyncio.timeout(seconds), self._places:
                return await self._notice.request(address, method, path, task_id, body)
        except TimeoutError:
            return Retry(f"The receiver did not answer within {seconds:g} s.", sent=True)

    async def deliver(self, address: str, posting: Posting) -> Outcome:
        """Make one attempt, in bounded time. It never raises."""
        channel = self._channels.get(_scheme(address))
        if channel is None:
            return _NO_CHANNEL
        try:
            async with asyncio.timeout(self.settings.timeout):
                return await channel.deliver(address, posting)
        except TimeoutError:
            return Retry(f"The receiver did not answer within {self.settings.timeout:g} s.")
        except Exception as error:  # one posting must not end the delivery of the others
            _logger.error("delivery of %s failed", posting.posting_id, exc_info=error)
            return Retry("The attempt failed in this server.")


def _open_mail(
    smtp: SmtpSettings, settings: DeliverySettings, server_id: str, environment: Mapping[str, str]
) -> Transport:
    try:
        from bespeak.extensions.messages.mail import Mail  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise ConfigError("[delivery.smtp] needs aiosmtplib: pip install 'bespeak[mail]'") from error
    password = None
    if smtp.password is not None:
        password = environment.get(smtp.password)
        if password is None:
            raise ConfigError(f"[delivery.smtp] password: the variable {smtp.password} is not set")
    return Mail(smtp, password, server_id, settings.ca_file)


def _scheme(address: str) -> str:
    return address.partition(":")[0].lower()


_PLACES: Final = 32  # attempts at a time
_FOR_RECEIVER: Final = 8  # attempts at a time for one domain: a receiver that hangs must not take all places
_FOR_SENDER: Final = 16  # attempts at a time for one sender, however many receivers it names
_BUSY: Final = (0.2, 10.0)  # least and most seconds to wait for a busy receiver or sender, the more if nothing moves
_MARGIN: Final = 20.0  # seconds by which a lease is longer than an attempt
_LONGEST_SLEEP: Final = 5.0  # seconds after which the outbox is read again, in case a wake-up was lost
_SHORTEST_SLEEP: Final = 0.05  # seconds to wait for another process that is claiming what is due
_PAUSE: Final = 1.0  # seconds after a failure of the store
_LONGEST_BACKOFF: Final = 3600.0


def backoff(attempts: int) -> float:
    """Return the seconds before the next attempt: 1, 4, 16 and so on up to an hour, and a fifth more or less."""
    return min(4.0 ** (attempts - 1), _LONGEST_BACKOFF) * random.uniform(0.8, 1.2)  # noqa: S311 - not a secret


class Drain:
    """A task that claims postings, and a task for each attempt. Processes on one store share the work."""

    def __init__(
        self, store: Store, delivery: Delivery, *, backoff: Callable[[int], float] = backoff, lease: float | None = None
    ) -> None:
        self._store = store
        self._delivery = delivery
        self._backoff = backoff
        self._lease = delivery.settings.timeout + _MARGIN if lease is None else lease
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._attempts: dict[asyncio.Task[bool], OutboxMessage] = {}
        self._busy: Counter[tuple[str, str]] = Counter()
        self._moved: dict[tuple[str, str], float] = {}  # last beginning or success for a receiver or sender

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
        await cancel_tasks(self._task, *cut_off)
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
        deferred = [
            ReleaseOutbox(message.position, message.fence, delay, attempted=False)
            for message in claimed[0]
            if (delay := self._begin(message)) is not None
        ]
        if deferred:
            await self._store.do(*deferred)
        return bool(claimed[0])

    def _begin(self, message: OutboxMessage) -> float | None:
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

    def _receiver(self, message: OutboxMessage) -> str:
        domain = self._delivery.locate(message.recipient)
        return domain if isinstance(domain, str) and domain else message.recipient.partition(":")[0]

    async def _attempt(self, message: OutboxMessage, posting: Posting) -> bool:
        """Attempt a delivery; return True if it has succeeded."""
        once = posting.guarantee == AT_MOST_ONCE
        try:
            if posting.expires is not None and posting.expires <= time.time():
                await self._finish(message, posting, EXPIRED)
                return False
            if once and not await self._finish(message, posting, SENT):
                return False
            outcome = await self._delivery.deliver(message.recipient, posting)
            if isinstance(outcome, Retry) and not once and message.attempts < self._delivery.settings.attempts:
                delay = min(max(self._backoff(message.attempts), outcome.after or 0.0), _LONGEST_BACKOFF)
                self._report(posting, message, outcome, delay)
                await self._store.do(ReleaseOutbox(message.position, message.fence, delay))
                return False
            state = DELIVERED if isinstance(outcome, Delivered) else FAILED
            if not isinstance(outcome, Delivered):
                self._report(posting, message, outcome)
            if not once:
                return await self._finish(message, posting, state) and state == DELIVERED
            if posting.record_id is not None:
                await self._store.do(SetState(posting.record_id, SENT, state))
            return state == DELIVERED
        except StoreError as error:
            _logger.log(level_of(error), "%s is tried again in %g s: %s", posting.posting_id, self._lease, error)
            return False

    async def _finish(self, message: OutboxMessage, posting: Posting, state: str) -> bool:
        """Remove a posting and change its record; return False if another process has claimed it meanwhile."""
        commands: list[Command] = [AckOutbox(message.position, message.fence)]
        if posting.record_id is not None:
            commands.append(SetState(posting.record_id, WAITING, state))
        return not isinstance(await self._store.do(*commands), Conflict)

    def _report(
        self, posting: Posting, message: OutboxMessage, outcome: Retry | Undeliverable, delay: float | None = None
    ) -> None:
        then = "It is not tried again." if delay is None else f"It is tried again in {delay:.0f} s."
        told = f"{outcome.message} {outcome.detail}".strip()
        # Without the rest of the address: paths of webhooks hold secrets, and mailboxes are personal.
        place = (posting.posting_id, self._receiver(message), message.attempts)
        level = logging.WARNING if delay is None else logging.INFO
        _logger.log(level, "%s to %s, attempt %d: %s %s", *place, told, then)


def _read(message: OutboxMessage) -> Posting:
    try:
        return msgspec.json.decode(message.payload, type=Posting)
    except msgspec.MsgspecError as error:
        _logger.error("message %d of the outbox is not a posting: %s", message.position, error)
        # It has expired, so that it is removed.
        return Posting("", "", "", None, expires=0.0)
