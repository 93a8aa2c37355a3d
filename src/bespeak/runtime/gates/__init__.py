"""The gates of the dispatcher, in one ordered tuple; the first refusal wins.

The drafts leave the order open (AGTP-API A.2 and 13.2 name input before scope). Here authority comes before
input, because a refusal then tells a caller without authority nothing about the contract's inside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call
from bespeak.runtime.gates.budget import budget_gate
from bespeak.runtime.gates.identity import identity_gate
from bespeak.runtime.gates.input import input_gate
from bespeak.runtime.gates.path import path_gate
from bespeak.runtime.gates.policy import policy_gate
from bespeak.runtime.gates.rate import address_rate_gate, agent_rate_gate, endpoint_rate_gate
from bespeak.runtime.gates.route import route_gate
from bespeak.runtime.gates.scope import scope_gate
from bespeak.runtime.gates.vocabulary import vocabulary_gate

Gate = Callable[[Call], Refused | None]

GATES: Final[tuple[Gate, ...]] = (
    address_rate_gate,  # 429
    identity_gate,  # 400 · 401 · 262 · 410 · 503 · 551
    agent_rate_gate,  # 429
    vocabulary_gate,  # 459 · 454
    path_gate,  # 460 · 454
    policy_gate,  # redirects · 405
    route_gate,  # 404 · 405 · 262
    scope_gate,  # 455 · 262
    budget_gate,  # 456 · 400
    endpoint_rate_gate,  # 429
    input_gate,  # 400 · 422
)

_COUNTING: Final = frozenset({address_rate_gate, agent_rate_gate, endpoint_rate_gate})


def gates_in_force(*, limited: bool) -> tuple[Gate, ...]:
    """The gates of a server; those that count calls are left out where nothing is limited."""
    return GATES if limited else tuple(gate for gate in GATES if gate not in _COUNTING)
