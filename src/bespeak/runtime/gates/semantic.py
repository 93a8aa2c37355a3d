"""422 and 409: what a call means is not what the endpoint does, or is not understood (IoA 7.1).

The gates are left out of a server without a semantic layer, whose modules are then not loaded.
"""

from __future__ import annotations

from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall


def semantic_gate(call: RoutedCall) -> Refused | None:
    """Understand the envelope of a call. A profile that the call only refers to is looked up after the gates."""
    layer = call.server.semantic
    refused: Refused | None = None if layer is None else layer.judge(call)
    return refused


def semantic_step_gate(call: RoutedCall) -> Refused | None:
    """Judge a step that the caller has named: that of EXECUTE or a plan. A composition is judged as a whole."""
    layer = call.server.semantic
    refused: Refused | None = None if layer is None else layer.judge_step(call)
    return refused
