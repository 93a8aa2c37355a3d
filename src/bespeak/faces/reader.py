"""The parser of a face, as the connection uses it."""

from __future__ import annotations

from typing import Protocol, TypeVar

from bespeak.protocol.exchange.messages import Malformed
from bespeak.protocol.wire.messages import Pause

RequestT_co = TypeVar("RequestT_co", covariant=True)


class Reader(Protocol[RequestT_co]):
    """The parser of a face: bytes in, requests out; no sockets, no clocks."""

    @property
    def buffered(self) -> int:
        """Bytes received and not yet returned; 0 between two requests."""
        ...

    @property
    def held(self) -> int:
        """Bytes of memory that they take."""
        ...

    def discard(self) -> None:
        """Release them; no more data is read."""
        ...

    def receive_data(self, data: bytes) -> None:
        """Add bytes received from the peer."""
        ...

    def receive_eof(self) -> None:
        """Record that the peer sends no more data."""
        ...

    def next_event(self) -> RequestT_co | Malformed | Pause:
        """Return the next complete request, the fault that ended reading, or a Pause."""
        ...
