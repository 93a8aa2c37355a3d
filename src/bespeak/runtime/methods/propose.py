"""PROPOSE on a server that does not negotiate: a refusal that refers to the existing endpoints (AGTP-API 8.7, 10.2)."""

from __future__ import annotations

from typing import Any

from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.relevance import as_text

_SIMILAR = 3


def propose(call: RoutedCall) -> Refused:
    """Refuse PROPOSE / on a server whose policy says `synthesis_enabled: false`."""
    explanation = "This server does not negotiate endpoints: its policy says synthesis_enabled is false."
    details: dict[str, Any] = {"reason": "synthesis-disabled", "explanation": explanation}
    if call.agent_id is not None or call.routes.policies.anonymous_discovery:
        # AGTP-API 10.2, step 5b: similar entries of the manifest, for callers that may see it.
        similar = call.routes.publication.candidates.find(as_text(call.input), _SIMILAR, agents=False)
        if similar:
            details["similar_endpoints"] = similar
    return Refused(status.PROPOSAL_REJECTED, "proposal-rejected", explanation, details)
