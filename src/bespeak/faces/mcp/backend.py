"""The boundary between MCP and a service: all that the MCP face knows of what it serves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.listed_call import ListedCall
from bespeak.protocol.exchange.outcome import Outcome
from bespeak.protocol.fault import Fault
from bespeak.runtime.route_table import RouteTable


class Backend(Protocol):
    """A service that can be called: inside this process, or at an address."""

    @property
    def name(self) -> str:
        """Name of the service."""
        ...

    @property
    def server_id(self) -> str:
        """Server id of the service."""
        ...

    @property
    def version(self) -> str:
        """Version of its contract."""
        ...

    async def endpoints(self, *, refresh: bool = False) -> Sequence[Endpoint]:
        """Return the endpoints. The same object is returned until they change; `refresh` looks for changes."""
        ...

    def own(self, request: Any) -> RouteTable | None:
        """Return what exists for the caller of a request; None if that is what exists for everyone."""
        ...

    async def document(self, media_type: str, request: Any) -> bytes | None:
        """Return the manifest or the AGIS document, as the caller may see it; None if there is none for it."""
        ...

    def caller(self, request: Any) -> str:
        """Return a text that identifies the caller of a request, for confirmations; `request` is None over stdio."""
        ...

    def parties(self, request: Any) -> tuple[str, ...]:
        """Return everyone behind a request, as far as it is known: none of them may confirm a call of it."""
        ...

    async def calls(
        self, endpoint: Endpoint, arguments: Mapping[str, Any], request: Any
    ) -> tuple[ListedCall, ...] | Fault:
        """List the calls that a composite would make; nothing for another endpoint. A fault says why it cannot."""
        ...

    def is_confirmed(self, endpoint: Endpoint) -> bool:
        """Return True if the service itself lets another party confirm every call of an endpoint."""
        ...

    def refuse(
        self,
        endpoint: Endpoint,
        request: Any,
        arguments: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Outcome | None:
        """Refuse a call that the service is known to refuse, so that no user is asked in vain.

        The caller lacks authority, or a purchase with these valid arguments and headers is not in order.
        """
        ...

    async def call(
        self, endpoint: Endpoint, arguments: Mapping[str, Any], headers: Mapping[str, str], request: Any
    ) -> Outcome:
        """Call an endpoint with the authority of the caller. `headers` are added to those of the backend."""
        ...
