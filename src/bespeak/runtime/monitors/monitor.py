"""A monitor as it is stored: what to look at, whom to tell, and what was seen last."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from bespeak.runtime.authority import Authority
from bespeak.runtime.call_statistics import Summary
from bespeak.runtime.monitors.target import Target


class Seen(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last value of an event."""

    value: Any = None
    """The value, or its digest if it is large."""
    beyond: bool = False
    """True if it was on the far side of the threshold."""


class View(msgspec.Struct, frozen=True):
    """What one process has seen of an endpoint."""

    at: float
    summary: Summary


class Monitor(msgspec.Struct, frozen=True, omit_defaults=True):
    """Content of the record of a monitor."""

    target: Target
    events: tuple[str, ...]
    callback: str
    """Agent-ID of the owner for its inbox, or an address that was verified."""
    interval: float
    authority: Authority
    threshold: Any = None
    version: int = 0
    """Version of the record that is looked at, when it was."""
    seen: dict[str, Seen] = {}
    views: dict[str, View] = {}
    """Views of the processes that share the store, by the id of each."""
    ended: dict[str, Any] | None = None
    """Code and message of the reason why it ended by itself; None while it looks."""


_encode = msgspec.json.Encoder().encode
decode: Final = msgspec.json.Decoder(Monitor).decode


def encode(monitor: Monitor) -> str:
    """Write a monitor."""
    return _encode(monitor).decode()
