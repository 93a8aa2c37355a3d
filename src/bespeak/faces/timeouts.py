"""Timeouts of a server for its peers."""

from __future__ import annotations

from typing import Final

import msgspec


class Timeouts(msgspec.Struct, frozen=True):
    """Timeouts in seconds. One timer checks them all, so each may be late by a quarter of the shortest."""

    idle: float = 75.0
    """Maximum time between two requests. Core 1 recommends at least 60."""
    read: float = 30.0
    """Maximum time from the first byte of a message to its last: slow sending does not extend it."""
    write: float = 30.0
    """Maximum time in which the peer reads none of the pending bytes."""
    handshake: float = 10.0
    drain: float = 10.0
    """Maximum time for running requests to finish when the server stops."""
    linger: float = 2.0
    """Maximum time for a refused peer to stop sending; closing earlier could discard the answer in transit."""

    crowded: float = 5.0
    """Maximum time to the first complete request while the server is full."""

    @property
    def period(self) -> float:
        """Interval between two checks of the deadlines."""
        return min(1.0, min(self.idle, self.read, self.write, self.linger, self.crowded) / 4)


DEFAULT_TIMEOUTS: Final = Timeouts()
