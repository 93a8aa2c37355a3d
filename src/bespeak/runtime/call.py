"""One request on its way through the gates."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from bespeak.protocol.exchange.headers import METHOD_GRAMMAR
from bespeak.protocol.exchange.principal import ANONYMOUS, Principal

if TYPE_CHECKING:
    from bespeak.contract.schema.compile import Validator
    from bespeak.protocol.exchange.messages import Request, Response
    from bespeak.protocol.exchange.token_hints import TokenHints
    from bespeak.runtime.route import Route
    from bespeak.runtime.route_table import RouteTable
    from bespeak.runtime.server import Server
    from bespeak.state.store.command import Command


class Call:
    """A request whose endpoint is not known yet. Each gate reads the results of earlier gates and adds its own."""

    __slots__ = ("method", "nonce", "path", "preset", "principal", "request", "routes", "server")

    route: Route | None = None
    """Always None here: RoutedCall has the route."""
    parent: RoutedCall | None = None
    """The composition that makes this call; None for a request. StepCall has it."""
    composing: Composing | None = None
    """Always None here: RoutedCall has it."""
    apart: bool = False
    """True if it is awaited in another task than the one in which it begins."""

    def __init__(self, request: Request, server: Server) -> None:
        self.request = request
        self.server = server
        self.routes: RouteTable = server.routes
        """The route table when the request arrived; later changes do not affect this request."""
        self.method: str = request.method
        """The method in force, which a redirect or a legacy mapping may change."""
        self.path: str = request.path
        self.principal: Principal = ANONYMOUS
        self.nonce: tuple[str, float] | None = None
        """Nonce of a signed request, valid once, and the seconds to remember it for."""
        self.preset: dict[str, Any] | None = None
        """Input added by a legacy mapping, such as `action: "delete"` (AGTP-API 3.6); None for a key that the caller
        has to send.
        """

    @property
    def speaks_agis(self) -> bool:
        """True if the request asks for AGIS rules; the vocabulary gate refuses all other grammars."""
        return METHOD_GRAMMAR in self.request.headers

    @property
    def table(self) -> RouteTable:
        """The endpoints that the caller may be shown: those of `routes`, and those synthesized for it alone."""
        return self.server.table_for(self.principal.agent_id, self.routes)

    @property
    def agent_id(self) -> str | None:
        """Agent-ID of the caller; None for an anonymous call."""
        return self.principal.agent_id


class RoutedCall(Call):
    """A call whose endpoint is known."""

    __slots__ = ("captures", "composing", "hints", "input", "route", "semantic")

    route: Route
    semantic: Any
    """Semantic envelope of the call as received. Not set without one, so that no other call pays."""
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
        """Values of the template's parameters; None for a literal path."""
        self.input = {}
        self.hints: TokenHints | None = None
        """Token hints of the caller; None for the complete answer."""
        self.composing: Composing | None = None
        """State of a composition that calls its steps; None for any other call."""


class DirectCall(RoutedCall):
    """A call whose endpoint is known as soon as it arrives: one object instead of two."""

    __slots__ = ()

    def __init__(self, request: Request, server: Server, routes: RouteTable, route: Route) -> None:
        self.request = request
        self.server = server
        self.routes = routes
        self.method = request.method
        self.path = request.path
        self.principal = ANONYMOUS
        self.nonce = None
        self.preset = None
        self.route = route
        self.captures = None
        self.input = {}
        self.hints = None
        self.composing = None

    def unrouted(self) -> Call:
        """Return the call without its endpoint, of which a refusal on arrival says nothing."""
        call = Call(self.request, self.server)
        call.routes, call.principal, call.nonce = self.routes, self.principal, self.nonce
        return call


class Composing(msgspec.Struct, gc=False):
    """What the steps of one call share."""

    response_id: str
    """Response-ID of the call, which is known from the beginning because the records of its steps name it."""
    spent: dict[str, Decimal]
    """Cost of the steps so far by unit, those of compositions that are steps included."""
    is_keyed: bool
    """True if what the steps do is kept under the caller's idempotency key."""
    output: Any = None
    """Output of the last step that has ended here."""
    accepted_by: Validator | None = None
    """Validator that has accepted this output; None before the first step has ended."""


class Journal(Protocol):
    """Where a workflow notes what its steps answer."""

    key: str
    """Idempotency key of the step, for effects outside the store."""

    def note(self, response: Response) -> Command | None:
        """Return the command that notes an answer; None if it is not to be noted yet."""
        ...

    def noted(self, state: str, response: Response) -> Response:
        """Take the result of that command, after the commit; return the response."""
        ...


class StepCall(RoutedCall):
    """One step of a composition, on behalf of the caller of the composition."""

    __slots__ = ("apart", "journal", "journaled", "number", "output", "parent", "response", "settled", "undoes")

    parent: RoutedCall

    def __init__(self, parent: RoutedCall, route: Route, given: dict[str, Any], request: Request, number: str) -> None:
        self.request = request
        self.server = parent.server
        self.routes = parent.routes
        self.method = request.method
        self.path = request.path
        self.principal = parent.principal
        self.nonce = None
        self.preset = None
        self.route = route
        self.captures = None
        self.input = given
        self.hints = None
        self.composing = None
        self.parent = parent
        self.apart = parent.apart
        self.number = number
        """Number of the step in its recipe; with the number of the element if it runs for each of a list."""
        self.journaled = False
        """True if its answer is kept under the caller's key although it changes nothing."""
        self.settled = False
        """True if the answer is stored or recorded, so that it must be encoded."""
        self.undoes = False
        """True if it undoes an earlier step."""
        self.journal: Journal | None = None
        """Where a workflow notes the answer, in the transaction of the step; None for a step of a composition."""
        self.output: Any = None
        """The output, if the step succeeded."""
        self.response: Response | None = None
        """The answer; None while the step runs."""
