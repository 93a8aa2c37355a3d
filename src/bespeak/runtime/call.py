"""One request on its way through the gates: who is behind it, what it may see, and what methods require of it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Coroutine
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from bespeak.contract.agent import Agent
from bespeak.protocol import status
from bespeak.protocol.exchange.header_values import decode64
from bespeak.protocol.exchange.messages import Request
from bespeak.protocol.exchange.principal import ANONYMOUS, Principal, service_principal
from bespeak.protocol.exchange.refusal import Refused, authorization_required
from bespeak.runtime.route import Route
from bespeak.state.identity.credentials import ed25519_mark

if TYPE_CHECKING:
    from bespeak.contract.schema.validation import Validator
    from bespeak.protocol.exchange.messages import Response
    from bespeak.protocol.exchange.token_hints import TokenHints
    from bespeak.runtime.answer import Effects
    from bespeak.runtime.route_table import RouteTable
    from bespeak.runtime.server import Server
    from bespeak.state.store.store import Command, Store


MOST_JOINED: Final = 100  # standard methods that the handler of one call may add


class Call:
    """A request whose endpoint is not known yet. Each gate reads the results of earlier gates and adds its own."""

    __slots__ = ("method", "nonce", "path", "preset", "principal", "request", "routes", "server")

    route: Route | None = None  # always None here: RoutedCall has the route
    parent: RoutedCall | None = None  # The composition that makes this call; None for a request. StepCall has it.
    composing: Composing | None = None  # always None here: RoutedCall has it
    apart: bool = False  # True if it is awaited in another task than the one in which it begins

    def __init__(self, request: Request, server: Server) -> None:
        self.request = request
        self.server = server
        self.routes: RouteTable = server.routes  # when the request arrived; later changes do not affect it
        self.method: str = request.method  # the method in force, which a redirect or a legacy mapping may change
        self.path: str = request.path
        self.principal: Principal = ANONYMOUS
        self.nonce: tuple[str, float] | None = None  # of a signed request, and the seconds to remember it for
        # Input of a legacy mapping, such as `action: "delete"` (AGTP-API 3.6); None for a key that the caller sends.
        self.preset: dict[str, Any] | None = None

    @property
    def table(self) -> RouteTable:
        """The endpoints that the caller may be shown: those of `routes`, and those synthesized for it alone."""
        return self.server.table_for(self.principal.agent_id, self.routes)

    @property
    def agent_id(self) -> str | None:
        return self.principal.agent_id

    @property
    def store(self) -> Store:
        """The store of a server that must have one, such as for a `stateful` handler."""
        assert self.server.store is not None, "a server without a store has refused the call"
        return self.server.store


class RoutedCall(Call):
    __slots__ = ("captures", "composing", "hints", "input", "joined", "outliving", "route", "semantic")

    route: Route
    semantic: Any  # Semantic envelope as received, or the refusal of an input that is read later. Not set without one.
    outliving: Callable[[], Coroutine[Any, Any, Response | Effects]]
    """Waits for the handler of a cancelled call that goes on in its thread. Not set for any other call."""
    input: dict[str, Any]  # the validated input; empty until the input gate

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
        self.captures = captures  # values of the template's parameters; None for a literal path
        self.input = {}
        self.hints: TokenHints | None = None  # token hints of the caller; None for the complete answer
        self.composing: Composing | None = None  # state of a composition that calls its steps; None for any other call
        self.joined: list[JoinedCall] | None = None  # methods that the handler has added; None if it has added none

    def join(self, method: str, given: dict[str, Any], path: str = "/", *, prefix: str = "") -> str:
        """Add a standard method that is carried out in the transaction of the answer, for the code of the service.

        Its scopes are not asked for: the code of the service decides what it does. It may be called from a thread.
        With a `prefix`, what it makes has the id that is returned.
        """
        route = self.routes.steps.get((method, path))
        missing = REQUIRES_STORE if self.server.store is None else None if route is None else route.endpoint.missing
        if route is None or missing is not None:
            advice = f"lacks {missing}" if missing else f"does not enable it: write {method} into [methods] enable"
            raise RuntimeError(f"{method} cannot be carried out: this server {advice}")
        given = msgspec.to_builtins(given)
        violations = route.input.violations(given)
        if violations:
            place = violations[0].pointer or "the parameters"
            raise ValueError(f"{method} does not take these parameters: {place}: {violations[0].message}")
        joined = self.joined = self.joined or []
        if len(joined) >= MOST_JOINED:
            raise ValueError(f"a call may add {MOST_JOINED} methods, the maximum")
        outer = self.request
        request = Request(method, path, "", outer.headers, b"", outer.connection)
        added = JoinedCall(self, route, given, request, f"joined {len(joined) + 1}")
        if added.principal.agent_id is None:
            added.principal = service_principal(self.server.registrar.service.identity.server_id)
        added.named = ordered_id(prefix) if prefix else ""
        joined.append(added)
        return added.named


def ordered_id(prefix: str) -> str:
    """Return a new id that grows with time, so that new ones are neighbours in an index: 48 bits of time, 80 random."""
    return f"{prefix}-{int(time.time() * 1000):012x}{secrets.token_hex(10)}"


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
        self.joined = None

    def unrouted(self) -> Call:
        """Return the call without its endpoint, of which a refusal on arrival says nothing."""
        call = Call(self.request, self.server)
        call.routes, call.principal, call.nonce = self.routes, self.principal, self.nonce
        return call


class Composing(msgspec.Struct, gc=False):
    """What the steps of one call share."""

    response_id: str  # of the call; known from the beginning because the records of its steps name it
    spent: dict[str, Decimal]  # cost of the steps so far by unit, those of compositions that are steps included
    is_keyed: bool  # True if what the steps do is kept under the caller's idempotency key
    output: Any = None  # output of the last step that has ended here
    accepted_by: Validator | None = None  # has accepted this output; None before the first step has ended


class Journal(Protocol):
    """Where a workflow notes what its steps answer."""

    key: str  # idempotency key of the step, for effects outside the store

    def note(self, response: Response) -> Command | None: ...  # the command; None if it is not to be noted yet
    def noted(self, state: str, response: Response) -> Response: ...  # takes its result, after the commit


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
        self.joined = None
        self.parent = parent
        self.apart = parent.apart
        self.number = number  # of the step in its recipe; with that of the element if it runs for each of a list
        self.journaled = False  # True if its answer is kept under the caller's key although it changes nothing
        self.settled = False  # True if the answer is stored or recorded, so that it must be encoded
        self.undoes = False  # True if it undoes an earlier step
        self.journal: Journal | None = None
        """Where a workflow notes the answer, in the transaction of the step; None for a step of a composition."""
        self.output: Any = None  # the output, if the step succeeded
        self.response: Response | None = None  # the answer; None while the step runs


class JoinedCall(StepCall):
    """A standard method that the handler of a call has added. It must only plan effects: its call commits them."""

    __slots__ = ("named",)

    named: str  # id of what it makes; empty if the method chooses it


def may_discover(call: Call) -> bool:
    """Return True if the caller may learn what this server serves (AGTP-API 8.7)."""
    return call.principal.agent_id is not None or call.routes.policies.anonymous_discovery


def sees(call: Call, route: Route) -> bool:
    """Return True if a route exists for the caller: it is not hidden, or the caller has the authority to call it."""
    if not route.is_hidden or (not route.endpoint.internal and may_discover(call)):
        return True
    principal, required = call.principal, route.endpoint.required_scopes
    if required:
        return principal.agent_id is not None and not principal.scopes.missing(required)
    return bool(principal.scopes) or not call.routes.policies.scope_required_for_invocation


def find_visible(call: Call, method: str, path: str) -> tuple[Route, dict[str, str] | None] | None:
    """Find the route for a method on a path among those that exist for the caller."""
    return call.routes.router.find(method, path, partial(sees, call) if call.routes.hides else None)


def undisclosed(call: Call) -> Refused:
    """Build the one refusal of a caller that may not discover. It depends on nothing that the server serves."""
    advice = call.server.principals.advice
    message = f"This server tells only identified agents what it serves; {advice}."
    return authorization_required("anonymous-discovery-disabled", message)


def refuse_stranger(call: Call) -> Refused | None:
    return None if may_discover(call) else undisclosed(call)


def parties_of(call: Call) -> tuple[str, ...]:
    """Return everyone behind a call: ids, names, principals and keys of the caller and of its delegators."""
    # The operator is left out: agents that it runs itself may decide about each other.
    principal, agents = call.principal, call.server.agents
    own = filter(None, (principal.agent_id, *principal.delegators, principal.principal_id))
    found = {text.casefold() for text in (*own, *principal.holders)}
    for agent_id in (principal.agent_id, *principal.delegators):
        agent = agents.get(agent_id)
        if agent is not None:
            found |= _of_agent(agent)
    found.discard(call.routes.service.identity.operator.casefold())
    return tuple(sorted(found))


def deciding_parties(call: Call) -> tuple[str, ...]:
    """Return everyone behind a decision: the parties of the call, and agents that share a name or a key with one."""
    # A case has the parties of its time; agents that have come to share a key since then are found here.
    own = set(parties_of(call))
    sharing = {agent.agent_id for agent in call.server.agents if not own.isdisjoint(_of_agent(agent))}
    return tuple(sorted(own | sharing))


def _of_agent(agent: Agent) -> set[str]:
    names = (agent.agent_id, agent.name, agent.label, agent.principal, agent.principal_id, agent.owner_id)
    found = {name.casefold() for name in names if name}
    raw = decode64(agent.public_key["x"]) if agent.public_key is not None else None
    if raw is not None:
        found.add(ed25519_mark(raw))
    return found


REQUIRES_STORE: Final = "a store to keep state in"
REQUIRES_RESOURCES: Final = "resources to search"  # what a server may lack, as refusals and published documents call it


def refuse_without_needs(call: RoutedCall) -> Refused | None:
    """Refuse with 501 what the server cannot carry out, with 262 an anonymous caller."""
    missing = REQUIRES_STORE if call.server.store is None else call.route.endpoint.missing
    if missing is not None:
        return not_available(call.method, missing)
    if call.agent_id is None:
        return call.server.principals.credentials_missing(f"{call.method} requires an identified agent")
    return None


def not_available(method: str, missing: str, advice: str = "") -> Refused:
    message = f"{method} is not available on this server: it requires {missing}.{advice}"
    return Refused(status.NOT_IMPLEMENTED, "not-implemented", message, {"method": method, "missing": missing})
