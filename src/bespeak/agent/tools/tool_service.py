"""The boundary between tools for models and the service behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from bespeak.contract.endpoint import Endpoint
from bespeak.protocol.exchange.outcome import Outcome


class ToolService(Protocol):
    """A service whose endpoints a model can call, with the authority of its client."""

    async def endpoints(self, *, refresh: bool = False) -> Sequence[Endpoint]:
        """Return the endpoints. The same object is returned until they change; `refresh` looks for changes."""
        ...

    def is_confirmed(self, endpoint: Endpoint) -> bool:
        """Return True if the service itself lets another party confirm every call of an endpoint."""
        ...

    def lacking(self, endpoint: Endpoint) -> list[str]:
        """Return the scopes that a call needs and the client is known not to have."""
        ...

    async def call(self, endpoint: Endpoint, arguments: Mapping[str, Any], headers: Mapping[str, str]) -> Outcome:
        """Call an endpoint and return the outcome, whatever it is."""
        ...
