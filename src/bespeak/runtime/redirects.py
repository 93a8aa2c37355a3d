"""Redirects of the method policy, resolved once: a request is sent on in one look-up (AGTP-API 9.2)."""

from __future__ import annotations

from collections.abc import Iterable

from bespeak.contract.policy import Redirect


class Redirects:
    """The redirect entries of a server. An entry for one path goes before an entry for the method alone."""

    def __init__(self, entries: Iterable[Redirect]) -> None:
        self._entries = {(entry.from_method, entry.from_path): entry for entry in entries}

    def __len__(self) -> int:
        return len(self._entries)

    def _next(self, method: str, path: str) -> tuple[str, str] | None:
        entry = self._entries.get((method, path)) or self._entries.get((method, None))
        return (entry.to_method, entry.to_path or path) if entry else None

    def follow(self, method: str, path: str) -> tuple[str, str]:
        """Where a request really goes. A chain is followed to its end; a circle ends where it began to repeat."""
        seen = {(method, path)}
        while (target := self._next(method, path)) is not None and target not in seen:
            seen.add(target)
            method, path = target
        return method, path

    def for_path(self, path: str) -> dict[str, str]:
        """Method to method, for the entries that apply to a path: what a 405 tells the agent."""
        return {
            entry.from_method: entry.to_method for entry in self._entries.values() if entry.from_path in (None, path)
        }
