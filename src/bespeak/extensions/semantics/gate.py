"""422 and 409: what a call means is not what the endpoint does, or is not understood (IoA 7.1)."""

from __future__ import annotations

from typing import Any, Final

from bespeak.protocol.exchange.messages import Request
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.gates.input import SEMANTIC, build_input_gate, read_body


def semantic_gate(call: RoutedCall) -> Refused | None:
    """Understand the envelope of a call. A profile that the call only refers to is looked up after the gates."""
    refused: Refused | None = call.server.part("semantic").judge(call)
    return refused


def semantic_step_gate(call: RoutedCall) -> Refused | None:
    """Judge a step that the caller has named: that of EXECUTE or a plan. A composition is judged as a whole."""
    refused: Refused | None = call.server.part("semantic").judge_step(call)
    return refused


def _read_enveloped(request: Request, call: RoutedCall) -> Any:
    """Decode the body and take the semantic envelope out of it, unless the endpoint has a member of that name."""
    value = read_body(request, call)
    declared = call.route.endpoint.input_schema.get("properties", ())
    if type(value) is dict and SEMANTIC in value and SEMANTIC not in declared:
        call.semantic = value.pop(SEMANTIC)
    return value


semantic_input_gate: Final = build_input_gate(_read_enveloped)
"""Reads the input; a body may carry an envelope beside it."""
