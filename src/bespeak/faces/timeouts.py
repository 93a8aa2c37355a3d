"""How long a server waits for a peer."""

from __future__ import annotations

from typing import Final

import msgspec


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds. They are looked at together by one timer, so each may be late by a quarter of the shortest."""

    idle: float = 75.0
    """Between two requests. Core 1 recommends at least 60."""
    read: float = 30.0
    """From the first byte of a message to its last: a peer cannot stretch it by sending slowly."""
    write: float = 30.0
    """Without the peer taking a single byte of what waits for it."""
    handshake: float = 10.0
    drain: float = 10.0
    """For running requests to finish when the server stops."""
    linger: float = 2.0
    """For a refused peer to stop sending, so that closing does not wipe out the answer on its way."""

    @property
    def period(self) -> float:
        """How often the deadlines are looked at."""
        return min(1.0, min(self.idle, self.read, self.write, self.linger) / 4)


DEFAULT_TIMEOUTS: Final = Timeouts()
