"""PROPOSE: asks for an endpoint that does not exist (AGTP-API 10)."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from bespeak.contract.http_value import as_text
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Answer, Effects
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.disclosure import may_discover

_SIMILAR = 3


def propose(call: RoutedCall) -> Refused | Coroutine[Any, Any, Answer | Effects | Refused]:
    """Answer PROPOSE /. A server whose policy says `synthesis_enabled: false` refuses, and names what it has (8.7)."""
    negotiator = call.server.negotiator
    if negotiator is not None:
        return negotiator.propose(call)
    explanation = "This server does not negotiate endpoints: its policy says synthesis_enabled is false."
    details: dict[str, Any] = {"reason": "synthesis-disabled", "explanation": explanation}
    if may_discover(call):
        # AGTP-API 10.2, step 5b: similar entries of the manifest, for callers that may see it.
        similar = call.routes.publication.candidates.find(as_text(call.input), _SIMILAR, agents=False)
        if similar:
            details["similar_endpoints"] = similar
    return Refused(status.PROPOSAL_REJECTED, "proposal-rejected", explanation, details)
