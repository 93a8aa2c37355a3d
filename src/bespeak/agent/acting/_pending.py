"""Stand-in until matching and arguments are merged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bespeak.contract import endpoint_index
from bespeak.contract.endpoint import Endpoint


@dataclass(frozen=True, slots=True)
class Evidence:
    verb: float = 0.0
    nouns: float = 0.0
    intent: float = 0.0
    parameters: float = 0.0
    vector: float = 0.0


@dataclass(frozen=True, slots=True)
class Match:
    place: int
    score: float
    confidence: float
    parts: Evidence


class EndpointIndex:
    def __init__(self, endpoints: Sequence[Endpoint], names: Sequence[str] = (), others: Iterable[str] = ()) -> None:
        self._index = endpoint_index.EndpointIndex(endpoints, names, others)

    def match(self, need: str, limit: int = 5) -> list[Match]:
        ranked = self._index.rank(need)[:limit]
        return [Match(place, score, min(0.99, score), Evidence()) for score, place in ranked]


@dataclass(frozen=True, slots=True)
class Argument:
    name: str
    value: Any
    span: tuple[int, int] | None
    confidence: float
    reason: str


@dataclass(frozen=True, slots=True)
class Arguments:
    found: Sequence[Argument] = ()
    offered: Sequence[Argument] = ()
    missing: Sequence[str] = ()
    values: Mapping[str, Any] = field(default_factory=dict)


def find_arguments(instruction: str, endpoint: Endpoint, *, now: datetime, order: str | None = None) -> Arguments:
    found = []
    for name in endpoint.input_schema.get("properties", {}):
        at = instruction.find(f"{name} ")
        if at >= 0:
            start = at + len(name) + 1
            word = instruction[start:].split(maxsplit=1)[0]
            kind = endpoint.input_schema["properties"][name].get("type")
            value: Any = int(word) if kind == "integer" else word
            found.append(Argument(name, value, (start, start + len(word)), 0.9, "named"))
    values = {one.name: one.value for one in found}
    missing = [name for name in endpoint.input_schema.get("required", ()) if name not in values]
    return Arguments(found, (), missing, values)
