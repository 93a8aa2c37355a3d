"""A sealer without keys: it numbers records and links each to its predecessor, which is all that a store sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bespeak.state.store.store import Sealed


class PlainSealer:
    """Its audit ids are `stream-number<previous`; what was kept and discarded is counted."""

    def __init__(self, stream: str = "plain") -> None:
        self._stream = stream
        self._sequence = 0
        self._heads: dict[str, str | None] = {}
        self._kept: tuple[int, dict[str, str | None]] = (0, {})
        self.discarded = 0

    def knows(self, agent_id: str) -> bool:
        return agent_id in self._heads

    def learn(self, agent_id: str, audit_id: str | None) -> None:
        self._heads[agent_id] = audit_id

    def seal(self, agent_id: str, payload: Mapping[str, Any]) -> Sealed:
        self._sequence += 1
        previous = (self._heads[agent_id] or "").partition("<")[0]
        audit_id = f"{self._stream}-{self._sequence}<{previous}"
        self._heads[agent_id] = audit_id
        return Sealed(audit_id, self._stream, self._sequence, agent_id, repr(dict(payload)))

    def keep(self) -> None:
        self._kept = (self._sequence, dict(self._heads))

    def discard(self) -> None:
        self.discarded += 1
        self._sequence, self._heads = self._kept[0], dict(self._kept[1])
