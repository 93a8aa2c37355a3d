"""PROPOSE while this server negotiates nothing: a clear refusal that points at what exists (AGTP-API 8.7, 10.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bespeak.protocol import status
from bespeak.protocol.exchange.context import Context
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.methods.publication import Publication
from bespeak.runtime.methods.relevance import as_text

_SIMILAR = 3


def propose(publication: Publication) -> Callable[[Context], Refused]:
    """PROPOSE / of a server whose policy says `synthesis_enabled: false`."""

    def answer(context: Context) -> Refused:
        explanation = "This server does not negotiate endpoints: its policy says synthesis_enabled is false."
        details: dict[str, Any] = {"reason": "synthesis-disabled", "explanation": explanation}
        if context.agent_id is not None or publication.registry.policies.anonymous_discovery:
            # AGTP-API 10.2, step 5b: entries of the manifest that serve a similar purpose, for who may see it.
            similar = publication.candidates.find(as_text(context.input), _SIMILAR, agents=False)
            if similar:
                details["similar_endpoints"] = similar
        return Refused(status.PROPOSAL_REJECTED, "proposal-rejected", explanation, details)

    return answer
