"""Requests and responses of all clients: the measure of what a server must not lose."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from dataclasses import dataclass, field

from bespeak.protocol.wire.messages import ResponseMessage

MARKER = "idempotency-replayed"


@dataclass(slots=True)
class Order:
    """One idempotency key: a request that is sent until it is answered, and sometimes again."""

    key: str
    method: str
    path: str
    body: bytes
    attempts: int = 0
    answer: tuple[int, bytes] | None = None
    """Status and body of the first acknowledgement; later ones must be equal."""
    firsts: int = 0
    """Number of responses without the replay marker; a second one means a second execution."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers beside those of every request; the last one of a name counts."""
    acknowledged: list[str] = field(default_factory=list)
    """Request-IDs of the responses received."""


class Ledger:
    """All orders of a run, and the faults."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self.orders: list[Order] = []
        self.open: list[Order] = []
        self.faults: list[str] = []
        self.counts: Counter[str] = Counter()
        self.sent = 0
        self.slowest = 0.0
        """Seconds until the slowest response."""
        self._awaited: list[tuple[int, asyncio.Event]] = []

    @property
    def answered(self) -> list[Order]:
        """Acknowledged orders."""
        return [order for order in self.orders if order.answer is not None]

    def choose(self) -> Order:
        """Choose a client's next request: repeat an order, possibly at the same time as another client, or make a
        new one.
        """
        chance = self._source.random()
        if self.open and chance < 0.25:
            return self._source.choice(self.open)
        if self.orders and chance < 0.4:
            return self._source.choice(self.orders)
        return self.new()

    def new(self) -> Order:
        """Make an order with a new key."""
        escalates = self._source.random() < 0.2
        kind = "case" if escalates else "seat"
        key = f"{kind}-{len(self.orders)}-{self._source.getrandbits(64):016x}"
        if escalates:
            content = {"task_id": key, "reason": "ethical_flag", "context": {"order": key}}
            order = Order(key, "ESCALATE", "/", json.dumps(content).encode())
        else:
            order = Order(key, "BOOK", "/seat", json.dumps({"passenger": key}).encode())
        self.orders.append(order)
        self.open.append(order)
        return order

    def request_id(self, order: Order) -> str:
        """Return the id of the next attempt at an order."""
        order.attempts += 1
        self.sent += 1
        for count, event in self._awaited:
            if self.sent >= count:
                event.set()
        return f"{order.key}.{order.attempts}"

    async def wait_for(self, requests: int) -> None:
        """Wait until that many more requests have been sent."""
        event = asyncio.Event()
        awaited = (self.sent + requests, event)
        self._awaited.append(awaited)
        await event.wait()
        self._awaited.remove(awaited)

    def note(self, order: Order, request_id: str, response: ResponseMessage, *, known: bool) -> None:
        """Record a response; `known` is True if the order was acknowledged before it was sent."""
        self.counts[str(response.status)] += 1
        if response.status in (200, 202):
            self._acknowledge(order, request_id, response, known=known)
        elif response.status not in (409, 503):
            self.faults.append(f"{request_id} was answered {response.status}: {response.body[:300]!r}")
        elif "retry-after" not in response.headers:
            said = f"{response.status} without Retry-After: {response.body[:300]!r}"
            self.faults.append(f"{request_id} was answered {said}")
        elif b"idempotency-lease-lost" in response.body:
            self.counts["taken over"] += 1

    def _acknowledge(self, order: Order, request_id: str, response: ResponseMessage, *, known: bool) -> None:
        order.acknowledged.append(request_id)
        said = (response.status, response.body)
        if order.answer is None:
            order.answer = said
            self.open.remove(order)
        elif order.answer != said:
            self.faults.append(f"{order.key} was answered {order.answer} and then {said}")
        if response.headers.get(MARKER) != "true":
            order.firsts += 1
            if known or order.firsts > 1:
                self.faults.append(f"{order.key} was carried out again: {request_id} is not a replay")
        else:
            self.counts["replays"] += 1
