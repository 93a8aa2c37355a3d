"""Retry policy: a request is repeated only if it is idempotent (AGTP-API 7.1)."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from bespeak.contract.grammar.path_syntax import parse_template
from bespeak.protocol.fault import Fault

SAFE_METHODS: Final = frozenset({"QUERY", "DISCOVER", "DESCRIBE", "SUMMARIZE", "PLAN"})
"""Floor methods without side effects (core 4); they count as idempotent unless a manifest says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Number of attempts and the delay between them: random, with a bound that doubles, so that clients spread out."""

    attempts: int = 3
    """Total number of attempts."""
    first_delay: float = 0.1
    """Upper bound of the first delay, in seconds."""
    longest_delay: float = 2.0
    """Upper bound of every delay, in seconds."""

    def delay(self, failures: int) -> float:
        """Draw the seconds to wait after a number of failures."""
        bound = min(self.longest_delay, self.first_delay * 2 ** (failures - 1))
        return random.uniform(0, bound)  # noqa: S311 - spreads load, guards nothing


class Idempotency:
    """Idempotency of endpoints by request path, taken from a manifest."""

    def __init__(self, endpoints: Iterable[tuple[str, str, bool]] = ()) -> None:
        self._exact: dict[tuple[str, str], bool] = {}
        self._templates: dict[tuple[str, int], list[tuple[tuple[str | None, ...], bool]]] = {}
        for method, path, is_idempotent in endpoints:
            template = parse_template(path)
            if isinstance(template, Fault):
                continue
            if template.is_literal:
                self._exact[method, path] = is_idempotent
            else:
                alike = self._templates.setdefault((method, len(template.segments)), [])
                alike.append((template.segments, is_idempotent))

    def may_repeat(self, method: str, path: str) -> bool:
        """Return True if the call may be sent again. If several templates match, all of them must allow it."""
        known = self._exact.get((method, path))
        if known is not None:
            return known
        segments = path[1:].split("/")
        found = [
            is_idempotent
            for template, is_idempotent in self._templates.get((method, len(segments)), ())
            if all(mine is None or mine == theirs for mine, theirs in zip(template, segments, strict=True))
        ]
        return all(found) if found else method in SAFE_METHODS
