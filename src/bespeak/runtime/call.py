"""One request on its way through the gates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bespeak.protocol.exchange.headers import METHOD_GRAMMAR
from bespeak.protocol.exchange.principal import ANONYMOUS, Principal

if TYPE_CHECKING:
    from bespeak.protocol.exchange.messages import Request
    from bespeak.protocol.exchange.token_hints import TokenHints
    from bespeak.runtime.route import Route
    from bespeak.runtime.route_table import RouteTable
    from bespeak.runtime.server import Server


class Call:
    """A request whose endpoint is not known yet. Each gate reads what earlier ones found out and adds its own."""

    __slots__ = ("method", "nonce", "path", "preset", "principal", "request", "routes", "server")

    route: Route | None = None
    """None here: the type that has one is RoutedCall."""

    def __init__(self, request: Request, server: Server) -> None:
        self.request = request
        self.server = server
        self.routes: RouteTable = server.routes
        """The endpoints at the moment the request came; a change while it is answered does not concern it."""
        self.method: str = request.method
        """The method in force: a redirect or a legacy mapping may change it."""
        self.path: str = request.path
        self.principal: Principal = ANONYMOUS
        self.nonce: tuple[str, float] | None = None
        """The nonce of a signed request, which may be used once, and the seconds to remember it for."""
        self.preset: dict[str, Any] | None = None
        """Input a legacy mapping adds, `action: "delete"` (AGTP-API 3.6)."""

    @property
    def speaks_agis(self) -> bool:
        """True if the request asks for AGIS rules; the vocabulary gate has refused every other grammar."""
        return METHOD_GRAMMAR in self.request.headers

    @property
    def agent_id(self) -> str | None:
        """The calling agent, or None for an anonymous call."""
        return self.principal.agent_id


class RoutedCall(Call):
    """A call whose endpoint is known."""

    __slots__ = ("captures", "hints", "input", "route")

    route: Route
    input: dict[str, Any]
    """The validated input; empty until the input gate."""

    def __init__(self, call: Call, route: Route, captures: dict[str, str] | None = None) -> None:
        self.request = call.request
        self.server = call.server
        self.routes = call.routes
        self.method = call.method
        self.path = call.path
        self.principal = call.principal
        self.nonce = call.nonce
        self.preset = call.preset
        self.route = route
        self.captures = captures
        """The values of the template's parameters; None for a literal path."""
        self.input = {}
        self.hints: TokenHints | None = None
        """Which part of the answer the caller wants; None for all of it."""
