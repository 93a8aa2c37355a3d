"""What clients asked for and what they were told: the measure of what a server must not forget."""

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
    """One key: a request that is sent until it is answered, and now and then again."""

    key: str
    method: str
    path: str
    body: bytes
    attempts: int = 0
    answer: tuple[int, bytes] | None = None
    """Status and body of the first acknowledgement; each later one must say the same."""
    firsts: int = 0
    """Answers without the marker of a replay; a second one would be a second run."""
    acknowledged: list[str] = field(default_factory=list)
    """The Request-IDs of the answers that arrived."""


class Ledger:
    """All orders of a run, and what went wrong."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self.orders: list[Order] = []
        self.open: list[Order] = []
        self.faults: list[str] = []
        self.counts: Counter[str] = Counter()
        self.sent = 0
        self.slowest = 0.0
        """Seconds for the slowest answer."""
        self._awaited: list[tuple[int, asyncio.Event]] = []

    @property
    def answered(self) -> list[Order]:
        """The orders that were acknowledged."""
        return [order for order in self.orders if order.answer is not None]

    def choose(self) -> Order:
        """What a client does next: ask again, perhaps beside another client that does, or ask for something new."""
        chance = self._source.random()
        if self.open and chance < 0.25:
            return self._source.choice(self.open)
        if self.orders and chance < 0.4:
            return self._source.choice(self.orders)
        return self.new()

    def new(self) -> Order:
        """An order under a key of its own."""
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
        """The id of the next attempt at an order."""
        order.attempts += 1
        self.sent += 1
        for count, event in self._awaited:
            if self.sent >= count:
                event.set()
        return f"{order.key}.{order.attempts}"

    async def wait_for(self, requests: int) -> None:
        """Until so many more requests have been sent."""
        event = asyncio.Event()
        awaited = (self.sent + requests, event)
        self._awaited.append(awaited)
        await event.wait()
        self._awaited.remove(awaited)

    def note(self, order: Order, request_id: str, response: ResponseMessage, *, known: bool) -> None:
        """What a server said; `known`: the order had been acknowledged when it was sent."""
        self.counts[str(response.status)] += 1
        if response.status in (200, 202):
            self._acknowledge(order, request_id, response, known=known)
        elif response.status not in (409, 503):
            self.faults.append(f"{request_id} was answered {response.status}: {response.body[:300]!r}")
        elif "retry-after" not in response.headers:
            self.faults.append(f"{request_id} was answered {response.status} without Retry-After")
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
                self.faults.append(f"{order.key} was carried out again: {request_id} is no replay")
        else:
            self.counts["replays"] += 1
