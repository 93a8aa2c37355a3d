"""PROPOSE asks for an endpoint that does not exist; QUERY /proposals returns its state (AGTP-API 10, 11; core 4.6)."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, Final

from bespeak.contract.http_value import as_text
from bespeak.contract.standard.definition import StandardMethod
from bespeak.contract.standard.floor import NEGOTIATED_ID_SCHEMA
from bespeak.extensions.negotiation.store import ProposalRow, ReadProposal, ReleaseSynthesis, proposal_id_of
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Answer, Effects
from bespeak.runtime.call import RoutedCall, may_discover
from bespeak.runtime.handling import effects
from bespeak.runtime.methods.suspension import NO_SYNTHESIS
from bespeak.runtime.rate import caller

_SIMILAR = 3


def propose(call: RoutedCall) -> Refused | Coroutine[Any, Any, Answer | Effects | Refused]:
    """Answer PROPOSE /. A server whose policy says `synthesis_enabled: false` refuses, and names what it has (8.7)."""
    negotiator = call.server.part("negotiation")
    if negotiator is not None:
        proposed: Coroutine[Any, Any, Answer | Effects | Refused] = negotiator.propose(call)
        return proposed
    explanation = "This server does not negotiate endpoints: its policy says synthesis_enabled is false."
    details: dict[str, Any] = {"reason": "synthesis-disabled", "explanation": explanation}
    if may_discover(call):
        # AGTP-API 10.2, step 5b: similar entries of the manifest, for callers that may see it.
        similar = call.routes.publication.candidates.find(as_text(call.input), _SIMILAR, agents=False)
        if similar:
            details["similar_endpoints"] = similar
    return Refused(status.PROPOSAL_REJECTED, "proposal-rejected", explanation, details)


_OF_ANOTHER: Final = Refused(
    status.FORBIDDEN, "synthesis-of-another", "The synthesis belongs to another agent, which alone may release it."
)


def release_synthesis(call: RoutedCall, synthesis_id: str) -> Effects:
    """End a synthesis of the caller, or withdraw a proposal that is pending or rejected."""

    def result(results: Sequence[ProposalRow]) -> dict[str, Any]:
        return {"synthesis_id": results[0].synthesis_id, "synthesis_cleared": True, "status": results[0].state}

    command = ReleaseSynthesis(proposal_id_of(synthesis_id), caller(call.principal, call.request.connection.address))
    own = call.server.own_endpoints
    assert own is not None, "the kernel has asked"
    return effects([command], result, {"of-another": _OF_ANOTHER, "": NO_SYNTHESIS}, own.refresh)


_METHOD: Final = StandardMethod(
    name="QUERY",
    description="Answers with the state of a proposal of the caller: 261 while it is open, then 263 or 463.",
    intent="Query the state of a proposal.",
    outcome="The contract, the reason of the refusal, or the state of the evaluation is returned.",
    takes={"proposal_id": NEGOTIATED_ID_SCHEMA},
)
PROPOSAL_METHODS: Final = (("/proposals/{proposal_id}", _METHOD), ("/proposals", _METHOD))
"""Paths and their method: with the id in the path, or in the body as the reference implementation sends it."""

_NOT_FOUND: Final = Refused(
    status.NOT_FOUND, "proposal-not-found", "This agent has no proposal with this id; PROPOSE / returns it."
)


async def proposals(call: RoutedCall) -> Answer | Refused:
    """Answer QUERY /proposals. The proposals of other agents do not exist for the caller."""
    from bespeak.extensions.negotiation.outcome import answer  # noqa: PLC0415 - most servers do without

    assert call.server.store is not None
    row: ProposalRow | None = await call.server.store.read(ReadProposal(call.input["proposal_id"]))
    if row is None or row.agent_id != caller(call.principal, call.request.connection.address):
        return _NOT_FOUND
    return answer(row)
