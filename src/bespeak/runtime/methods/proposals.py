"""QUERY /proposals/{proposal_id}: the state of a proposal until it is decided (AGTP-API 11, core 4.6)."""

from __future__ import annotations

from typing import Final

from bespeak.contract.standard.method import StandardMethod
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Answer
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.methods.floor import NEGOTIATED_ID_SCHEMA
from bespeak.runtime.rate import caller
from bespeak.state.store.commands.proposals import ProposalRow, ReadProposal

_METHOD: Final = StandardMethod(
    name="QUERY",
    description="Answers with the state of a proposal of the caller: 261 while it is open, then 263 or 463.",
    intent="Query the state of a proposal.",
    outcome="The contract, the reason of the refusal, or the state of the evaluation is returned.",
    parameters={"proposal_id": NEGOTIATED_ID_SCHEMA},
    required=("proposal_id",),
)
PROPOSAL_METHODS: Final = (("/proposals/{proposal_id}", _METHOD), ("/proposals", _METHOD))
"""Paths and their method: with the id in the path, or in the body as the reference implementation sends it."""

_NOT_FOUND: Final = Refused(
    status.NOT_FOUND, "proposal-not-found", "This agent has no proposal with this id; PROPOSE / returns it."
)


async def proposals(call: RoutedCall) -> Answer | Refused:
    """Answer QUERY /proposals. The proposals of other agents do not exist for the caller."""
    from bespeak.runtime.negotiation.outcome import answer  # noqa: PLC0415 - most servers do without

    assert call.server.store is not None
    row: ProposalRow | None = await call.server.store.read(ReadProposal(call.input["proposal_id"]))
    if row is None or row.agent_id != caller(call.principal, call.request.connection.address):
        return _NOT_FOUND
    return answer(row)
