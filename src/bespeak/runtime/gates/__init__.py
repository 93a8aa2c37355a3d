"""The gates of the dispatcher, in one order; the first refusal wins.

The drafts leave the order open (AGTP-API A.2 and 13.2 name input before scope). Here authority comes before input, so
that a refusal reveals nothing about the contract to a caller without authority.

ARRIVAL applies to every request, ROUTING finds its endpoint, and ROUTED judges by the endpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bespeak.contract.deprecation import Deprecation
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.disclosure import may_discover, undisclosed
from bespeak.runtime.gates.budget import budget_gate
from bespeak.runtime.gates.confirmation import confirmation_gate
from bespeak.runtime.gates.identity import identity_gate
from bespeak.runtime.gates.input import input_gate, step_input_gate
from bespeak.runtime.gates.path import path_gate
from bespeak.runtime.gates.policy import policy_gate
from bespeak.runtime.gates.purchase import purchase_gate
from bespeak.runtime.gates.rate import address_rate_gate, agent_rate_gate, endpoint_rate_gate
from bespeak.runtime.gates.route import route_gate
from bespeak.runtime.gates.scope import scope_gate
from bespeak.runtime.gates.semantic import semantic_gate, semantic_step_gate
from bespeak.runtime.gates.vocabulary import vocabulary_gate
from bespeak.state.identity.authentication import Outdated

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
    semantic_gate,  # 409 · 422
    purchase_gate,  # 403 · 422 · 456 · 458
    confirmation_gate,  # 501
)
_OF_STEPS: Final = {input_gate: step_input_gate, semantic_gate: semantic_step_gate}
STEP: Final = tuple(_OF_STEPS.get(gate, gate) for gate in ROUTED)
"""Gates of the steps of a composition, whose input is not read from a body."""


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
    """Return the deprecation of the endpoint that a call meant, if it was refused before the endpoint was known.

    AGTP-API 6.4 demands the warning on every response. An endpoint that the caller may not know of is not revealed.
    """
    routes = call.routes
    if not routes.has_deprecated or not may_discover(call):
        return None
    meant = Call(call.request, call.server)
    meant.routes = routes
    if any(gate(meant) is not None for gate in ROUTING):
        return None
    found = routes.find_public(meant.method, meant.path)
    return None if found is None else found.endpoint.deprecated
