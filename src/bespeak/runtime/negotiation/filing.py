"""Filing of an evaluated proposal: the commands that store it, and the answer that they give."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from bespeak.contract.negotiation import NegotiationSettings
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Answer, Effects
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.negotiation.contract import Contract
from bespeak.runtime.negotiation.evaluation import Rejection
from bespeak.runtime.negotiation.outcome import answer, describe, refuse
from bespeak.runtime.negotiation.proposal import Proposal, read_proposal
from bespeak.runtime.sessions import refuse_session
from bespeak.runtime.stored_endpoint import write_endpoint
from bespeak.state.store.command import Command, Conflict
from bespeak.state.store.commands.proposals import (
    APPROVED,
    KEPT,
    PENDING,
    REJECTED,
    Filed,
    FileProposal,
    FindNegotiation,
)
from bespeak.state.store.commands.sessions import BindSession

_WAITING: Final[dict[str, tuple[str, ...]]] = {
    "none": (),
    "irreversible": ("irreversible",),
    "changing": ("reversible", "irreversible"),
    "persistent": ("persistent",),
    "all": ("informational", "reversible", "irreversible", "persistent"),
}
"""What waits for an operator, by the setting `approval`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filing:
    """A proposal with everything that its row in the store needs."""

    call: RoutedCall
    proposal: Proposal
    owner: str
    """The agent, or the network of an anonymous caller."""
    session_id: str
    settings: NegotiationSettings
    idle: float
    """Seconds without use after which a synthesis outside a named session ends."""
    proposal_id: str = field(default_factory=lambda: f"prop-{secrets.token_hex(16)}")

    def find(self, negotiation_id: str) -> FindNegotiation:
        """Return the command that finds what happened before."""
        proposal = self.proposal
        return FindNegotiation(
            agent_id=self.owner,
            session_id=self.session_id,
            method=proposal.endpoint.method,
            path=proposal.endpoint.path,
            contract=proposal.contract,
            negotiation_id=negotiation_id,
        )

    def approve(
        self,
        contract: Contract,
        negotiation_id: str,
        *,
        keeps: bool,
        was_revoked: bool,
        committed: Callable[[], Awaitable[None]],
    ) -> Effects:
        """Instantiate the contract, or let an operator decide, who decides in any case about what was revoked.

        `keeps` makes it persistent.
        """
        settings = self.settings
        granted = self.idle
        if keeps:
            granted = min(self.proposal.duration or settings.default_duration, settings.max_duration)
        about = {contract.endpoint.semantic.impact, *(("persistent",) if keeps else ())}
        waits = was_revoked or not about.isdisjoint(_WAITING[settings.approval])
        command = FileProposal(
            **self._place(negotiation_id),
            document=_write(contract),
            session_id="" if keeps else self.session_id,
            state=PENDING if waits else APPROVED,
            granted=granted,
            lasts=settings.decision if waits else granted,
            persistent=keeps,
            most_live=settings.most_live,
        )
        return Effects((*self._bind_session(), command), _respond, committed)

    def reject(self, rejection: Rejection, negotiation_id: str) -> Effects:
        """Refuse with the reason, and remember what is offered instead."""
        details = describe(self.call, self.proposal.endpoint, rejection)
        counter, offered = rejection.counter, None
        if counter is not None:
            offered = read_proposal(details["counter_proposal"], self.call.routes.catalog)
        command = FileProposal(
            **self._place(negotiation_id),
            document=_encode({"refusal": details}) if counter is None else _write(counter, refusal=details),
            session_id=self.session_id,
            state=REJECTED,
            granted=KEPT,
            lasts=KEPT,
            counter_digest=offered.contract if isinstance(offered, Proposal) else None,
        )

        def respond(outcome: Sequence[Any] | Conflict) -> Refused:
            assert not isinstance(outcome, Conflict), "a rejection is always stored"
            filed: Filed = outcome[-1]
            return refuse(filed.proposal, details, filed.rejections)

        return Effects((command,), respond)

    def _place(self, negotiation_id: str) -> dict[str, Any]:
        return {
            "proposal_id": self.proposal_id,
            "negotiation_id": negotiation_id,
            "agent_id": self.owner,
            "method": self.proposal.endpoint.method,
            "path": self.proposal.endpoint.path,
            "digest": self.proposal.digest,
        }

    def _bind_session(self) -> tuple[Command, ...]:
        """Extend the session, which only the body may name, so that it lives when the synthesis is stored."""
        principal = self.call.principal
        if not self.session_id or principal.agent_id is None:
            return ()
        return (BindSession(self.session_id, principal.agent_id, principal.tls_identity or "", self.idle),)


def _write(contract: Contract, **more: Any) -> str:
    return write_endpoint(contract.endpoint, contract.recipe, explanation=contract.explanation, **more)


def _encode(data: Any) -> str:
    return msgspec.json.encode(data).decode()


def _respond(outcome: Sequence[Any] | Conflict) -> Answer | Refused:
    if not isinstance(outcome, Conflict):
        return answer(outcome[-1].proposal)
    if outcome.reason not in ("too-many", "too-large"):
        return refuse_session(outcome)
    unit = "living endpoints" if outcome.reason == "too-many" else "characters in the contracts of living endpoints"
    return Refused(
        status.RATE_LIMITED,
        "too-many-syntheses",
        f"There may be {outcome.details['most']} {unit}; release one with SUSPEND first.",
        headers=(("Retry-After", "60"),),
    )
