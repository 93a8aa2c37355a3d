"""The gates of the dispatcher, in one order; the first refusal wins.

The drafts leave the order open (AGTP-API A.2 and 13.2 name input before scope). Here authority comes before input, so
that a refusal reveals nothing about the contract to a caller without authority.

ARRIVAL applies to every request, ROUTING finds its endpoint, and ROUTED judges by the endpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bespeak.contract.endpoint import Deprecation
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call, RoutedCall, may_discover, undisclosed
from bespeak.runtime.composition.step import AUTHORIZED, UNDOES, UNLIMITED, VALID
from bespeak.runtime.extension import Anchor, gates_behind
from bespeak.runtime.gates.authority import (
    address_rate_gate,
    agent_rate_gate,
    budget_gate,
    confirmation_gate,
    endpoint_rate_gate,
    identity_gate,
    scope_gate,
)
from bespeak.runtime.gates.input import input_gate, step_input_gate
from bespeak.runtime.gates.route import path_gate, policy_gate, route_gate, vocabulary_gate
from bespeak.state.identity.credentials import Outdated

if TYPE_CHECKING:
    from bespeak.runtime.server import Server

ARRIVAL: Final[tuple[Callable[[Call], Refused | Outdated | None], ...]] = (
    address_rate_gate,  # 429
    identity_gate,  # 400 · 401 · 262 · 410 · 503 · 551
    agent_rate_gate,  # 429
)
ROUTING: Final[tuple[Callable[[Call], Refused | None], ...]] = (
    vocabulary_gate,  # 459 · 454
    path_gate,  # 460 · 454
    policy_gate,  # redirects · 405
)
ROUTED: Final[tuple[Callable[[RoutedCall], Refused | None], ...]] = (
    scope_gate,  # 455 · 262
    budget_gate,  # 456 · 400
    endpoint_rate_gate,  # 429
    input_gate,  # 400 · 422
    confirmation_gate,  # 501
)
_ANCHORS: Final = {scope_gate: Anchor.AUTHORIZED, input_gate: Anchor.READ}  # gates of extensions stand behind these

_PASSED: Final[tuple[set[Callable[..., Any]], ...]] = tuple(
    {
        # What was done must be undone, whatever it costs.
        *((budget_gate, endpoint_rate_gate) if flags & UNDOES else ()),
        *((scope_gate,) if flags & AUTHORIZED else ()),
        *((step_input_gate,) if flags & VALID else ()),
        *((budget_gate,) if flags & UNLIMITED else ()),
    }
    for flags in range(0, 64, 4)
)  # gates that a step need not pass, by its flags without JOURNALED and APART


class Gates(NamedTuple):
    arrival: tuple[Callable[[Call], Refused | Outdated | None], ...]
    routed: tuple[Callable[[RoutedCall], Refused | None], ...]
    steps: tuple[tuple[Callable[..., Refused | None], ...], ...]  # by the flags of a step without JOURNALED and APART


def plan_gates(server: Server) -> Gates:
    left_out: set[Callable[..., Any]] = set()
    if not server.rates:
        left_out |= {address_rate_gate, agent_rate_gate, endpoint_rate_gate}
    if server.store is not None:
        left_out.add(confirmation_gate)
    reading = next((extension.reads for extension in server.extensions if extension.reads is not None), input_gate)
    routed: list[Callable[[RoutedCall], Refused | None]] = []
    steps: list[Callable[[RoutedCall], Refused | None]] = []
    for gate in ROUTED:
        if gate not in left_out:
            routed.append(reading if gate is input_gate else gate)
            steps.append(step_input_gate if gate is input_gate else gate)  # their input is not read from a body
        if gate in _ANCHORS:
            for brought in gates_behind(server.extensions, _ANCHORS[gate], server.registrar.service.methods):
                # Only a reader of an extension may leave an input to be read later.
                deferred = gate is input_gate and reading is not input_gate
                routed.append(_once_read(brought.judge) if deferred else brought.judge)
                steps.append(brought.step or brought.judge)
    return Gates(
        tuple(gate for gate in ARRIVAL if gate not in left_out),
        tuple(routed),
        tuple(tuple(gate for gate in steps if gate not in passed) for passed in _PASSED),
    )


def _once_read(judge: Callable[[RoutedCall], Refused | None]) -> Callable[[RoutedCall], Refused | None]:
    """Leave out calls whose input an extension reads later, which then runs `judge_read`."""
    return lambda call: None if isinstance(getattr(call, "semantic", None), Refused) else judge(call)


def judge_read(call: RoutedCall) -> Refused | None:
    """Judge a call whose input was not read in its turn by the gates that stand behind that."""
    gates = gates_behind(call.server.extensions, Anchor.READ, call.server.registrar.service.methods)
    return next(filter(None, (gate.judge(call) for gate in gates)), None)


def judge_early(call: RoutedCall) -> Refused | None:
    """Judge a call by the gates that extensions want passed before a person is asked to confirm it."""
    for gate in gates_behind(call.server.extensions, Anchor.READ, call.server.registrar.service.methods):
        refused = gate.judge(call) if gate.early else None
        if refused is not None:
            return refused
    return None


def find_route(call: Call) -> RoutedCall | Refused:
    """Run the gates that lead to an endpoint. Callers that may not discover get one refusal for all of them."""
    for gate in ROUTING:
        refused = gate(call)
        if refused is not None:
            break
    else:
        found = route_gate(call)  # 404 · 405 · 262
        if isinstance(found, RoutedCall):
            return found
        refused = found
    return refused if may_discover(call) else undisclosed(call)


def find_deprecation(call: Call) -> Deprecation | None:
    """Return the deprecation of the endpoint that a refused call meant, if the caller may know of it (AGTP-API 6.4)."""
    routes = call.routes
    if not routes.has_deprecated or not may_discover(call):
        return None
    meant = Call(call.request, call.server)
    meant.routes = routes
    if any(gate(meant) is not None for gate in ROUTING):
        return None
    found = routes.find_public(meant.method, meant.path)
    return None if found is None else found.endpoint.deprecated
