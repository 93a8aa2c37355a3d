"""The two ends of a connection: sources, of which new items are taken, and destinations, to which they are given."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple, Protocol

import msgspec

from bespeak.contract.participant import CHANNEL, SINK, SOURCE
from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.acquire.store import digest_of
from bespeak.extensions.data.collection import DataCollection, Row, list_collections, read_filters
from bespeak.extensions.integrate.settings import NatsSettings
from bespeak.extensions.messages.message import decode_message, decode_origin
from bespeak.extensions.messages.posting import Posting
from bespeak.extensions.messages.recipients import verify_callback
from bespeak.extensions.messages.store import ListMessages
from bespeak.extensions.messages.transports import Delivered
from bespeak.extensions.queues.methods import list_queues
from bespeak.protocol import status
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.bindings.stream import StreamBinding
from bespeak.runtime.call import Call, Composing, Journal, RoutedCall
from bespeak.runtime.concurrency import cancel_tasks
from bespeak.runtime.gates import find_route
from bespeak.runtime.handling import RefusedError, finish_step, passed, refusal, to_json, usable_functions
from bespeak.runtime.route import Route
from bespeak.state.store.commands.records import RemoveRecord
from bespeak.state.store.store import Command

CONNECT: Final = STANDARD["CONNECT"]
STREAM, WEBHOOK, POLLING, BUS = "stream", "webhook", "polling", "event-bus"
INBOX: Final = "inbox"
PATIENCE: Final = 5.0  # seconds to wait for an item before the claim of a connection is renewed
NOTHING: Final[Any] = object()  # value of an item that only moves the cursor
_MOST_ITEM: Final = 512 * 1024
_PAGE: Final = 100
_PAGES: Final = 20  # pages of rows that one turn reads if none of them meets the filter
_OWN: Final = ("resource_id", "entity_id")  # members that identify a row, of which the first is the server's alone


class Item(NamedTuple):
    value: Any
    cursor: Any  # where the source goes on behind it, as JSON
    also: tuple[Command, ...] = ()  # commands of the transaction that notes its delivery
    settled: Any = None  # async function without arguments, for after that


class SourceEndedError(Exception):
    """There will be no more items."""


class Source(ABC):
    """Where items come from. It is opened once for each time that a process works on a connection."""

    channel_type: ClassVar[str]
    waits: ClassVar[bool] = False  # True if `take` waits for items, so that nothing is read at intervals

    @abstractmethod
    async def take(self, call: RoutedCall, cursor: Any, limit: int) -> list[Item]:
        """Return what is new behind a cursor. Raises RefusedError, 404 if there is no such source for the caller."""

    async def check(self, call: RoutedCall) -> None:  # noqa: B027 - most need none
        """Refuse a source that the caller may not read."""

    async def close(self) -> None:  # noqa: B027 - most hold nothing
        """Let go of what is held open."""


class RowSource(Source):
    """New rows of a collection, in the order of its scan."""

    channel_type = POLLING

    def __init__(self, name: str, conditions: Mapping[str, Any]) -> None:
        self._name = name
        self._filters = read_filters(conditions, "config")

    async def check(self, call: RoutedCall) -> None:
        await self._find(call)

    async def _find(self, call: RoutedCall) -> Any:
        found = await list_collections(call, self._name)
        if not found:
            raise _no_source(f"There is no collection {self._name[:80]!r} that this agent may read.")
        found[0].check(self._filters, (), "config")
        return found[0]

    async def take(self, call: RoutedCall, cursor: Any, limit: int) -> list[Item]:
        # The last page is read again each time, and what was delivered of it is known: so rows that are committed
        # late, and those behind the last full page, are neither missed nor repeated.
        collection, after = await self._find(call), None if cursor is None else cursor["after"]
        seen: list[str] = [] if cursor is None else cursor["seen"]
        for _ in range(_PAGES):
            rows, following = await collection.scan(None if after is None else tuple(after), _PAGE, self._filters)
            left, known, items = Counter(seen), list(seen), list[Item]()
            for row in rows:
                name = _identify(collection, row)
                if left[name]:
                    left[name] -= 1
                    continue
                known.append(name)
                value = {member: one for member, one in row.items() if member != _OWN[0]}
                items.append(Item(value, {"after": after, "seen": list(known)}))
            if following is not None and items:
                items[-1] = items[-1]._replace(cursor={"after": following, "seen": []})
            if items or following is None:
                return items[:limit]
            after, seen = list(following), []
        return [Item(NOTHING, {"after": after, "seen": []})]


def _identify(collection: Any, row: Row) -> str:
    own = next((row[name] for name in _OWN if name in row), None)
    if own is not None and not isinstance(collection, DataCollection):
        return str(own)
    key = collection.key if isinstance(collection, DataCollection) else ()
    return digest_of([row.get(name) for name in key] if key else row)


class AnswerSource(Source):
    """The answer of an informational endpoint, whenever it has changed."""

    channel_type = POLLING

    def __init__(self, method: str, path: str, parameters: dict[str, Any]) -> None:
        self._method, self._path, self._parameters = method, path, parameters

    def _find(self, call: RoutedCall) -> RoutedCall:
        asked = Call(msgspec.structs.replace(call.request, method=self._method, path=self._path, body=b""), call.server)
        asked.principal = call.principal
        found = find_route(asked)
        endpoint = None if isinstance(found, Refused) else found.route.endpoint
        if isinstance(found, Refused) or endpoint is None or endpoint.semantic.impact != "informational":
            message = f"There is no endpoint {self._method} {self._path[:80]} here that only informs."
            raise _no_source(message)
        if endpoint.passes_on or call.principal.scopes.missing(endpoint.required_scopes):
            raise _no_source(f"This agent must not read {endpoint}, which needs other scopes or calls others.")
        return found

    async def check(self, call: RoutedCall) -> None:
        self._find(call)

    async def take(self, call: RoutedCall, cursor: Any, limit: int) -> list[Item]:
        found = self._find(call)
        given = found.route.fill_captures(self._parameters, found.captures)
        output = passed(await run_step(call, found.route, given, self._path))
        digest = digest_of(output)
        return [] if digest == cursor else [Item(output, digest)]


class PublicationSource(Source):
    """What is published on a channel. The connection is a subscriber with an inbox of its own."""

    channel_type = STREAM

    def __init__(self, inbox: str) -> None:
        self._inbox = inbox

    async def take(self, call: RoutedCall, cursor: Any, limit: int) -> list[Item]:
        found = await call.store.read(ListMessages(self._inbox, limit=limit))
        items = []
        for record, origin in found:
            content = decode_message(record.data).content if origin is None else decode_origin(origin).content
            items.append(Item(content, None, (RemoveRecord(record.record_id),)))
        return items


class FunctionSource(Source):
    """What a function of the service yields. It is called with the last item that was delivered."""

    channel_type = STREAM
    waits = True

    def __init__(self, route: Route) -> None:
        self._route = route
        self._items: asyncio.Queue[Any] = asyncio.Queue(1)
        self._task: asyncio.Task[None] | None = None

    async def take(self, call: RoutedCall, cursor: Any, limit: int) -> list[Item]:
        if self._task is None:
            taken = {"after": cursor} if self._route.endpoint.input_schema.get("properties") else {}
            binding = self._route.call
            assert isinstance(binding, StreamBinding), "it was bound as a source"
            pumping = self._pump(binding.follow(call, taken))
            self._task = asyncio.get_running_loop().create_task(pumping, name="bespeak-channel")
        getting = asyncio.ensure_future(self._items.get())
        await asyncio.wait((getting, self._task), timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        if not getting.done():
            await cancel_tasks(getting)
            if self._task.done():
                self._task.result()
                raise SourceEndedError
            return []
        value = getting.result()
        return [Item(value, value)]

    async def _pump(self, items: AsyncGenerator[Any]) -> None:
        async for item in items:
            await self._items.put(item)

    async def close(self) -> None:
        await cancel_tasks(self._task)


class Bus(Protocol):
    """An event bus, whose module needs an extra."""

    settings: NatsSettings

    def source(self, connection_id: str, subject: str) -> Source: ...
    def destination(self, subject: str) -> Destination: ...


class Destination(ABC):
    """Where items go. What `give` does is noted with the journal in one transaction, or before it returns."""

    channel_type: ClassVar[str | None] = None
    batch: int = 1  # items that it takes at a time

    @abstractmethod
    async def give(self, call: RoutedCall, values: Sequence[Any], journal: Journal) -> Refused | bool:
        """Give items; return True if the journal has noted that, False if the caller has to, or the refusal."""

    async def check(self, call: RoutedCall) -> None:  # noqa: B027 - most need none
        """Refuse a destination that the caller may not write to."""


class StepDestination(Destination):
    """Another method or a function of the service: its effects and the note of the delivery are one transaction."""

    def __init__(self, route: Route, given: dict[str, Any], member: str, *, batch: int = 0) -> None:
        self._route, self._given, self._member = route, given, member
        self.batch = batch or 1
        self._is_list = batch > 0

    async def give(self, call: RoutedCall, values: Sequence[Any], journal: Journal) -> Refused | bool:
        if self._is_list and len(values) == 1 and len(to_json(values[0])) > _MOST_ITEM:  # it would become a job
            return Refused(status.CONTENT_TOO_LARGE, "too-large", f"It has more than {_MOST_ITEM >> 10} KiB.")
        given = {**self._given, self._member: list(values) if self._is_list else values[0]}
        violations = self._route.input.violations(given)
        if violations:
            return Refused(status.UNPROCESSABLE, "invalid-item", f"It does not fit: {violations[0].message}")
        done = await run_step(call, self._route, given, self._route.endpoint.path, journal)
        return done if isinstance(done, Refused) else True


class AddressDestination(Destination):
    """An address outside, which has agreed to receive. Items are posted in order, signed, with their ids as keys."""

    channel_type = WEBHOOK

    def __init__(self, address: str) -> None:
        self._address = address

    async def check(self, call: RoutedCall) -> None:
        await verify_callback(call, self._address)

    async def give(self, call: RoutedCall, values: Sequence[Any], journal: Journal) -> Refused | bool:
        sender = call.server.registrar.service.identity.server_id
        posting = Posting(journal.key, "connection", sender, values[0], recipient=call.agent_id)
        outcome = await call.server.part("delivery").deliver(self._address, posting)
        if isinstance(outcome, Delivered):
            return False
        return Refused(status.UNAVAILABLE, "not-delivered", outcome.message)


async def run_step(
    call: RoutedCall, route: Route, given: dict[str, Any], path: str, journal: Journal | None = None
) -> Any:
    """Call an endpoint, a method or a function in the authority of a call; return its output or its refusal."""
    dispatcher = call.server.dispatcher
    call.composing = Composing(dispatcher.new_id(), {}, is_keyed=False)
    step, response = await finish_step(dispatcher.run_step(call, route, given, path, "1", journal=journal))
    if status.is_success(response.status):
        return step.output
    told = msgspec.json.decode(response.body).get("error", {}) if response.body else {}
    return Refused(response.status, response.code or "failed", str(told.get("message", "")))


def open_source(call: RoutedCall, connection_id: str, text: str, config: Mapping[str, Any]) -> Source:
    """Return the source that a text means. Raises RefusedError, 404."""
    kind, _, name = text.partition(":")
    method, _, path = text.partition(" ")
    if path.startswith("/"):
        return AnswerSource(method, path, dict(config.get("parameters", {})))
    if kind == "collection" and name:
        return RowSource(name, config.get("filter", {}))
    if kind == "messages" and name:
        return PublicationSource(connection_id)
    if kind == CHANNEL and (route := _find_channel(call, name, SOURCE)) is not None:
        return FunctionSource(route)
    if kind == "nats" and name:
        return find_bus(call, name).source(connection_id, name)
    forms = "collection:NAME, METHOD /path, messages:CHANNEL, channel:NAME or nats:SUBJECT"
    raise _no_source(f"There is no source {text[:80]!r} for this agent; write {forms}.")


def open_destination(call: RoutedCall, text: str, config: Mapping[str, Any]) -> Destination:
    """Return the destination that a text means. Raises RefusedError, 404."""
    kind, _, name = text.partition(":")
    steps, refused = call.routes.steps, ""
    if kind == "queue" and ("SUBMIT", "/") in steps:
        if name in list_queues(call, pulls=False):
            return StepDestination(steps["SUBMIT", "/"], {"target": name}, "payload")
    elif kind == "collection" and ("IMPORT", "/") in steps:
        given = {"target": name} | ({"key": config["key"]} if "key" in config else {})
        if not (violations := steps["IMPORT", "/"].input.violations({**given, "source": [{}]})):
            return StepDestination(steps["IMPORT", "/"], given, "source", batch=_PAGE)
        refused = f" {violations[0].message}"
    elif text == INBOX or is_canonical_id(text):
        recipient = call.agent_id if text == INBOX else text
        return StepDestination(steps["NOTIFY", "/"], {"recipient": recipient}, "content")
    elif kind in ("https", "http", "agtp"):
        return AddressDestination(text)
    elif kind == CHANNEL and (route := _find_channel(call, name, SINK)) is not None:
        return StepDestination(route, {}, next(iter(route.endpoint.input_schema["properties"])))
    elif kind == "nats" and name:
        return find_bus(call, name).destination(name)
    forms = "queue:NAME, collection:NAME, inbox, an Agent-ID, an address, channel:NAME or nats:SUBJECT"
    message = f"There is no destination {text[:80]!r} for this agent; write {forms}.{refused}"
    raise refusal(CONNECT, "destination-not-found", message, field="/destination")


def _find_channel(call: RoutedCall, name: str, role: str) -> Route | None:
    """Return the function of a channel; one whose scopes the caller lacks does not exist for it."""
    joined = usable_functions(call, CHANNEL).get(name)
    return None if joined is None else joined.routes.get(role)


def find_bus(call: RoutedCall, subject: str) -> Bus:
    """Return the event bus, if the operator lets agents use a subject of it."""
    bus: Bus | None = call.server.part("bus")
    if bus is None:
        advice = "write [connect.nats] with `servers` and `subjects`, and install bespeak[nats]"
        raise refusal(CONNECT, "bus-unavailable", f"This server has no event bus: {advice}.")
    if not bus.settings.admits(subject):
        raise _no_source(f"The operator does not list the subject {subject[:80]!r} in [connect.nats] subjects.")
    return bus


def _no_source(message: str) -> RefusedError:
    return refusal(CONNECT, "source-not-found", message, field="/source")
