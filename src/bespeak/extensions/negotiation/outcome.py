"""Outcome of a proposal: the commands that store it, and its answer: 263 with the contract, 261 or 463 (core 4.6)."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.limits import write_duration
from bespeak.contract.negotiation import NegotiationSettings
from bespeak.documents.projections.agtp_manifest import project_endpoint
from bespeak.extensions.negotiation.evaluation import POLICY, Rejection
from bespeak.extensions.negotiation.plan import Contract
from bespeak.extensions.negotiation.proposal import Proposal, read_proposal
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import MEDIA_AGTP, MEDIA_ENDPOINT
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.additions import read_endpoint, write_endpoint
from bespeak.runtime.answer import Answer, Effects
from bespeak.runtime.call import Call, RoutedCall, may_discover
from bespeak.runtime.sessions import refuse_session
from bespeak.state.store.commands.proposals import (
    APPROVED,
    KEPT,
    PENDING,
    REJECTED,
    Filed,
    FileProposal,
    FindNegotiation,
    ProposalRow,
)
from bespeak.state.store.commands.sessions import BindSession
from bespeak.state.store.store import Command, Conflict

MOST_TURNS: Final = 3  # rejections of a negotiation after which the agent must ESCALATE (AGTP-API 10.2)
_SIMILAR: Final = 3
_RETRY_SECONDS: Final = "5"
_ESCALATE: Final = "Three proposals of this negotiation were rejected; ESCALATE to a person instead of proposing again."

_encode = msgspec.json.Encoder().encode


def answer(row: ProposalRow) -> Answer | Refused:
    """Answer with the current state of a proposal."""
    if row.state == APPROVED:
        return _approved(row)
    if row.state == PENDING:
        return _pending(row)
    if row.state == REJECTED:
        kept = msgspec.json.decode(row.document)
        details = kept["refusal"] if "refusal" in kept else _refused_by_operator(row)
        return refuse(row, details)
    said = f": {row.reason}" if row.reason else ""
    return Refused(
        status.GONE,
        "proposal-ended",
        f"The proposal {row.proposal_id} is {row.state}{said}; propose the endpoint again.",
        {"proposal_id": row.proposal_id, "state": row.state},
    )


def refuse(row: ProposalRow, details: Mapping[str, Any], rejections: int = 0) -> Refused:
    """Build the 463 of a rejected proposal."""
    members = {**details, "proposal_id": row.proposal_id, "negotiation_id": row.negotiation_id}
    explanation = details["explanation"]
    if rejections:
        members["rejections"] = rejections
    if rejections >= MOST_TURNS:
        members["must_escalate"] = True
        explanation = f"{explanation} {_ESCALATE}"
    return Refused(
        status.PROPOSAL_REJECTED,
        "proposal-rejected",
        explanation,
        {**members, "explanation": explanation},
        headers=_negotiation(row.negotiation_id),
    )


def escalate(negotiation_id: str, rejections: int) -> Refused:
    """Refuse a turn after the last one: nothing is evaluated any more."""
    members = {"reason": POLICY, "explanation": _ESCALATE, "must_escalate": True, "rejections": rejections}
    return Refused(
        status.PROPOSAL_REJECTED,
        "proposal-rejected",
        _ESCALATE,
        {**members, "negotiation_id": negotiation_id},
        headers=_negotiation(negotiation_id),
    )


def describe(call: Call, proposed: Endpoint, rejection: Rejection) -> dict[str, Any]:
    """Return the members of a 463: reason, explanation, what is similar, and the counter-proposal."""
    members: dict[str, Any] = {"reason": rejection.reason, "explanation": rejection.explanation, **rejection.details}
    if may_discover(call):
        similar = similar_endpoints(
            call, f"{proposed} {proposed.description} {proposed.semantic.intent}", rejection.nearest
        )
        if similar:
            members["similar_endpoints"] = similar
    if rejection.counter is not None:
        members["counter_proposal"] = project_endpoint(rejection.counter.endpoint)
        members["counter_plan"] = list(rejection.counter.explanation)
    return members


def similar_endpoints(call: Call, need: str, first: Sequence[Endpoint] = ()) -> list[dict[str, Any]]:
    """List entries of the manifest that come near to a need (AGTP-API 10.2, step 5b)."""
    named = [
        {"kind": "endpoint", "method": one.method, "path": one.path, "description": one.description, "relevance": 1.0}
        for one in first
    ]
    known = {endpoint.key for endpoint in first}
    found = call.routes.publication.candidates.find(need, _SIMILAR, agents=False)
    return [*named, *(one for one in found if (one["method"], one["path"]) not in known)][:_SIMILAR]


def describe_synthesis(row: ProposalRow) -> dict[str, Any]:
    """Return the ids, the time and the contract of a synthesis."""
    stored, _ = read_endpoint(row.document, row.synthesis_id)
    assert stored is not None, "what is stored was read back before"
    definition = project_endpoint(stored.endpoint)
    return {
        "synthesis_id": row.synthesis_id,
        "proposal_id": row.proposal_id,
        "negotiation_id": row.negotiation_id,
        "state": row.state,
        "persistent": row.persistent,
        "expires_at": write_instant(row.expires),
        "granted_duration": write_duration(row.granted),
        "endpoint": definition,
        "instantiated_endpoint": {
            **definition,
            "proposed": True,
            "scope_required": list(stored.endpoint.required_scopes),
            "expires": write_instant(row.expires) if row.persistent else "session",
        },
        "plan": stored.explanation,
    }


def _approved(row: ProposalRow) -> Answer:
    described = describe_synthesis(row)
    # The media type is that of a definition, so the body is one; clients look for it in three places.
    body = {**described["endpoint"], "status": status.PROPOSAL_APPROVED, **described}
    headers = (("Synthesis-Id", row.synthesis_id), *_negotiation(row.negotiation_id))
    return Answer(_encode(body), status.PROPOSAL_APPROVED, MEDIA_ENDPOINT, headers)


def _pending(row: ProposalRow) -> Answer:
    body = {
        "status": status.NEGOTIATION_IN_PROGRESS,
        "proposal_id": row.proposal_id,
        "negotiation_id": row.negotiation_id,
        "state": row.state,
        "explanation": "An operator of this server has to approve the endpoint; ask again later.",
        "polling_path": f"/proposals/{row.proposal_id}",
        "evaluation_started_at": write_instant(row.created),
        "estimated_duration": write_duration(row.expires - row.created),
        "max_evaluation_duration": write_duration(row.expires - row.created),
    }
    headers = (("Retry-After", _RETRY_SECONDS), *_negotiation(row.negotiation_id))
    return Answer(_encode(body), status.NEGOTIATION_IN_PROGRESS, MEDIA_AGTP, headers)


def _refused_by_operator(row: ProposalRow) -> dict[str, Any]:
    reason = f": {row.reason}" if row.reason else "."
    return {"reason": POLICY, "explanation": f"An operator of this server rejected the endpoint{reason}"}


def _negotiation(negotiation_id: str) -> tuple[tuple[str, str], ...]:
    return (("Negotiation-ID", negotiation_id),)


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
    owner: str  # the agent, or the network of an anonymous caller
    session_id: str
    settings: NegotiationSettings
    idle: float  # seconds without use after which a synthesis outside a named session ends
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
            document=_filing_encode({"refusal": details}) if counter is None else _write(counter, refusal=details),
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


def _filing_encode(data: Any) -> str:
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
