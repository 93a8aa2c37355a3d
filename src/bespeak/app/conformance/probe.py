"""One exchange with the server under test: the request, the response, and access to its parts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgspec

from bespeak.text.diagnostics.printable import printable
from bespeak.text.reading.json_data import decode_json

_SHOWN: Final = 240
"""Limit of shown evidence; `bespeak call` shows the whole response."""


@dataclass(frozen=True)
class Exchanged:
    """A request and its response."""

    method: str
    target: str
    sent: bytes
    status: int
    reason: str
    headers: Mapping[str, str]
    """Headers with names in lower case."""
    body: bytes
    agent_id: str | None = None
    scope: str | None = None

    def header(self, name: str) -> str | None:
        """Return a response header by name in any case."""
        return self.headers.get(name.lower())

    @cached_property
    def json(self) -> Any:
        """Body as JSON, or None if it is not JSON."""
        try:
            return decode_json(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def field(self, name: str) -> Any:
        """Return a field of the body, at the top or inside `error`: the drafts do not say which (core 5.4)."""
        body = self.json
        error = body.get("error") if isinstance(body, dict) else None
        for place in (body, error, error.get("details") if isinstance(error, dict) else None):
            if isinstance(place, dict) and name in place:
                return place[name]
        return None

    def mentions(self, text: str) -> bool:
        """Return True if the body contains a text."""
        return text.encode() in self.body

    @property
    def refuses_identity(self) -> bool:
        """True if the server refused our identity before it looked at the request."""
        if self.status in (401, 403):
            return True
        return self.field("code") in ("missing-agent-id", "agent-not-found", "invalid-canonical-id") or (
            self.status == 262 and self.field("type") != "wildcards-required"
        )

    def __str__(self) -> str:
        said = [f"{self.method} {self.target}"]
        if self.agent_id is not None:
            said.append(f"Agent-ID: {self.agent_id[:8]}…")
        if self.scope is not None:
            said.append(f"Authority-Scope: {self.scope}")
        if self.sent:
            said.append(_short(self.sent))
        return f"{' | '.join(said)} → {self.status} {self.reason} {_short(self.body)}".rstrip()


Send = Callable[[str, str, Mapping[str, str], bytes], Awaitable[Exchanged]]
"""Function that sends method, target, headers and body unchanged and returns any response, including refusals."""


def _short(body: bytes) -> str:
    text = printable(" ".join(body.decode("utf-8", "replace").split()))
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
