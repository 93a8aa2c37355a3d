"""The event bus: subjects of NATS JetStream as sources and destinations."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
from nats.aio.client import Client
from nats.errors import Error, NoRespondersError
from nats.js.api import AckPolicy, ConsumerConfig
from nats.js.client import JetStreamContext

from bespeak.extensions.integrate.channels import BUS, CONNECT, NOTHING, PATIENCE, Destination, Item, Source
from bespeak.extensions.integrate.settings import NatsSettings, read_token
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Journal, RoutedCall
from bespeak.runtime.handling import RefusedError, passed

_ACK_WITHIN: Final = 30.0  # seconds after which a message that is not acknowledged comes again
_AT_ONCE: Final = 100  # messages of a consumer that are not acknowledged
_ABANDONED: Final = 7 * 86400.0  # seconds after which the consumer of a connection that nobody works on is removed
_WITHIN: Final = 5.0


class EventBus:
    """One connection of this process to NATS, which is opened when it is first used."""

    def __init__(self, settings: NatsSettings, environment: Mapping[str, str]) -> None:
        self.settings = settings
        self._token = read_token(settings.token, "connect.nats", environment)
        self._client: Any = None
        self._opening = asyncio.Lock()

    async def context(self) -> JetStreamContext | Refused:
        """Return JetStream, or why it cannot be reached."""
        async with self._opening:
            if self._client is None:
                options: dict[str, Any] = {"token": self._token, "error_cb": _ignore, "max_reconnect_attempts": -1}
                client = Client()
                try:
                    async with asyncio.timeout(_WITHIN):
                        await client.connect(list(self.settings.servers), **options)
                except (Error, OSError, TimeoutError) as error:
                    await client.close()
                    return _unavailable(error)
                self._client = client
        context: JetStreamContext = self._client.jetstream(timeout=_WITHIN)
        return context

    async def close(self) -> None:
        if self._client is not None:
            with suppress(Error, TimeoutError):
                async with asyncio.timeout(_WITHIN):
                    await self._client.close()

    def source(self, connection_id: str, subject: str) -> Source:
        return BusSource(self, connection_id, subject)

    def destination(self, subject: str) -> Destination:
        return BusDestination(self, subject)


async def _ignore(_: Exception) -> None:
    """Leave a failure to whoever waits for the answer."""


def _unavailable(error: BaseException) -> Refused:
    # Texts of the library have addresses of servers, which may have credentials.
    lacking = "no stream has the subject" if isinstance(error, NoRespondersError) else type(error).__name__
    return CONNECT.refuse("bus-unavailable", f"The event bus cannot be used now: {lacking}.")


class BusSource(Source):
    """Messages of a subject, by a durable consumer. A message is acknowledged after its delivery has been committed.

    The cursor has the numbers of messages whose acknowledgement is not certain: if they come again, they are not moved
    again.
    """

    channel_type = BUS
    waits = True

    def __init__(self, bus: EventBus, connection_id: str, subject: str) -> None:
        self._bus, self._name, self._subject = bus, connection_id, subject
        self._consumer: Any = None
        self._confirmed: set[int] = set()

    async def check(self, call: RoutedCall) -> None:
        context = passed(await self._bus.context())
        try:
            await context.find_stream_name_by_subject(self._subject)
        except (Error, TimeoutError) as error:
            raise RefusedError(_unavailable(error)) from None

    async def take(self, call: RoutedCall, cursor: Any, limit: int) -> list[Item]:
        try:
            if self._consumer is None:
                context = passed(await self._bus.context())
                config = ConsumerConfig(
                    ack_policy=AckPolicy.EXPLICIT,
                    ack_wait=_ACK_WITHIN,
                    max_ack_pending=_AT_ONCE,
                    inactive_threshold=_ABANDONED,
                )
                self._consumer = await context.pull_subscribe(self._subject, durable=self._name, config=config)
            messages = await self._consumer.fetch(limit, timeout=PATIENCE)
        except TimeoutError:
            return []
        except Error as error:
            raise RefusedError(_unavailable(error)) from None
        items = []
        unsure = set(cursor or ()) - self._confirmed
        for message in messages:
            number = message.metadata.sequence.stream
            again, unsure = number in unsure, unsure | {number}
            try:
                value = NOTHING if again else msgspec.json.decode(message.data)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                value = {"data": message.data.decode(errors="replace")}

            async def settle(message: Any = message, number: int = number) -> None:
                try:
                    await message.ack_sync(timeout=_WITHIN)
                    self._confirmed.add(number)
                except (Error, TimeoutError):
                    pass  # it comes again, and is known

            items.append(Item(value, sorted(unsure), settled=settle))
        return items

    async def close(self) -> None:
        if self._consumer is not None:
            with suppress(Error, TimeoutError):
                async with asyncio.timeout(_WITHIN):
                    await self._consumer.unsubscribe()


class BusDestination(Destination):
    """A subject. The id of an item is that of its message, so that JetStream leaves out what comes twice."""

    channel_type = BUS

    def __init__(self, bus: EventBus, subject: str) -> None:
        self._bus, self._subject = bus, subject

    async def check(self, call: RoutedCall) -> None:
        passed(await self._bus.context())

    async def give(self, call: RoutedCall, values: Sequence[Any], journal: Journal) -> Refused | bool:
        context = await self._bus.context()
        if isinstance(context, Refused):
            return context
        try:
            headers = {"Nats-Msg-Id": journal.key}
            await context.publish(self._subject, msgspec.json.encode(values[0]), headers=headers, timeout=_WITHIN)
        except (Error, TimeoutError) as error:
            return _unavailable(error)
        return False
