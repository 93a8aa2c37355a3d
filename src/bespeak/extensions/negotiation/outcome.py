"""Outcome of a proposal: the commands that store it, and its answer: 263 with the contract, 261 or 463 (core 4.6)."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.limits import write_duration
from bespeak.documents.projections.agtp_manifest import project_endpoint
from bespeak.extensions.negotiation import store as commands
from bespeak.extensions.negotiation.evaluation import POLICY, Rejection
from bespeak.extensions.negotiation.plan import PlannedContract
from bespeak.extensions.negotiation.proposal import Proposal, read_proposal
from bespeak.extensions.negotiation.settings import NegotiationSettings
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import MEDIA_AGTP, MEDIA_ENDPOINT
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.additions import StoredEndpoint, read_endpoint, write_endpoint
from bespeak.runtime.answer import Answer, Effects
from bespeak.runtime.call import Call, RoutedCall, may_discover
from bespeak.runtime.handling import to_json
from bespeak.runtime.sessions import refuse_session
from bespeak.state.store.commands.sessions import BindSession
from bespeak.state.store.store import Command, Conflict, Store

MOST_TURNS: Final = 3  # rejections of a negotiation after which the agent must ESCALATE (AGTP-API 10.2)
_SIMILAR: Final = 3
_ESCALATE: Final = "Three proposals of this negotiation were rejected; ESCALATE to a person instead of proposing again."

_encode = msgspec.json.Encoder().encode


def answer(row: commands.ProposalRow, stored: StoredEndpoint | None = None) -> Answer | Refused:
    """Answer with the state of a proposal. `stored` is what its document says, if that is known."""
    negotiation = ("Negotiation-ID", row.negotiation_id)
    if row.state == commands.APPROVED:
        described = _describe(row, stored)
        # The media type is that of a definition, so the body is one; clients look for it in three places.
        body = {**described["endpoint"], "status": status.PROPOSAL_APPROVED, **described}
        headers = (("Synthesis-Id", row.synthesis_id), negotiation)
        return Answer(_encode(body), status.PROPOSAL_APPROVED, MEDIA_ENDPOINT, headers)
    if row.state == commands.PENDING:
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
        return Answer(_encode(body), status.NEGOTIATION_IN_PROGRESS, MEDIA_AGTP, (("Retry-After", "5"), negotiation))
    if row.state == commands.REJECTED:
        reason = f": {row.reason}" if row.reason else "."
        by_operator = {"reason": POLICY, "explanation": f"An operator of this server rejected the endpoint{reason}"}
        return refuse(row, msgspec.json.decode(row.document).get("refusal", by_operator))
    said = f": {row.reason}" if row.reason else ""
    message = f"The proposal {row.proposal_id} is {row.state}{said}; propose the endpoint again."
    return Refused(status.GONE, "proposal-ended", message, {"proposal_id": row.proposal_id, "state": row.state})


def refuse(row: commands.ProposalRow, details: Mapping[str, Any], rejections: int = 0) -> Refused:
    members = {**details, "proposal_id": row.proposal_id}
    if rejections:
        members["rejections"] = rejections
    if rejections >= MOST_TURNS:
        members["must_escalate"] = True
        members["explanation"] = f"{members['explanation']} {_ESCALATE}"
    return _rejected(row.negotiation_id, members)


def escalate(negotiation_id: str, rejections: int) -> Refused:
    """Refuse a turn after the last one: nothing is evaluated any more."""
    members = {"reason": POLICY, "explanation": _ESCALATE, "must_escalate": True, "rejections": rejections}
    return _rejected(negotiation_id, members)


def _rejected(negotiation_id: str, members: Mapping[str, Any]) -> Refused:
    details = {**members, "negotiation_id": negotiation_id}
    headers = (("Negotiation-ID", negotiation_id),)
    return Refused(status.PROPOSAL_REJECTED, "proposal-rejected", members["explanation"], details, headers=headers)


def describe(call: Call, proposed: Endpoint, rejection: Rejection) -> dict[str, Any]:
    """Return the members of a 463: reason, explanation, what is similar, and the counter-proposal."""
    members: dict[str, Any] = {"reason": rejection.reason, "explanation": rejection.explanation, **rejection.details}
    if may_discover(call):
        need = f"{proposed} {proposed.description} {proposed.semantic.intent}"
        similar = similar_endpoints(call, need, rejection.nearest)
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


async def inspect_synthesis(store: Store, synthesis_id: str) -> tuple[str, dict[str, Any] | None]:
    """Return the agent of a synthesis and its description; None if it is not in use."""
    row: commands.ProposalRow | None = await store.read(commands.ReadProposal(commands.proposal_id_of(synthesis_id)))
    if row is None:
        return "", None
    return row.agent_id, None if row.state in (commands.PENDING, commands.REJECTED) else _describe(row)


def _describe(row: commands.ProposalRow, stored: StoredEndpoint | None = None) -> dict[str, Any]:
    stored = stored or read_endpoint(row.document, row.synthesis_id)[0]
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


_WAITING: Final[dict[str, tuple[str, ...]]] = {
    "none": (),
    "irreversible": ("irreversible",),
    "changing": ("reversible", "irreversible"),
    "persistent": ("persistent",),
    "all": ("informational", "reversible", "irreversible", "persistent"),
}
"""What waits for an operator, by the setting `approval`."""


class WrittenContract(NamedTuple):
    """A contract as it is stored, and as every process reads it again."""

    document: str
    stored: StoredEndpoint
    is_public: bool


def write_contract(contract: PlannedContract) -> WrittenContract:
    """Write a contract and read it back. For a large one that takes long, so it is called in a thread."""
    document = _write(contract)
    stored, _ = read_endpoint(document, "proposal")
    assert stored is not None, "the contract was registered"
    return WrittenContract(document, stored, contract.is_public)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filing:
    call: RoutedCall
    proposal: Proposal
    owner: str  # the agent, or the network of an anonymous caller
    session_id: str
    settings: NegotiationSettings
    idle: float  # seconds without use after which a synthesis outside a named session ends
    proposal_id: str = field(default_factory=lambda: f"prop-{secrets.token_hex(16)}")

    def find(self, negotiation_id: str) -> commands.FindNegotiation:
        proposal = self.proposal
        place = (self.owner, self.session_id, proposal.endpoint.method, proposal.endpoint.path)
        return commands.FindNegotiation(*place, proposal.contract, negotiation_id)

    def approve(
        self,
        written: WrittenContract,
        negotiation_id: str,
        *,
        keeps: bool,
        was_revoked: bool,
        committed: Callable[[], Awaitable[None]],
    ) -> Effects:
        """Instantiate the contract, persistent if `keeps`, or let an operator decide, as about what was revoked."""
        settings = self.settings
        granted = self.idle
        if keeps:
            granted = min(self.proposal.duration or settings.default_duration, settings.max_duration)
        about = {written.stored.endpoint.semantic.impact, *(("persistent",) if keeps else ())}
        waits = was_revoked or not about.isdisjoint(_WAITING[settings.approval])
        command = commands.FileProposal(
            **self._place(negotiation_id),
            document=written.document,
            session_id="" if keeps else self.session_id,
            state=commands.PENDING if waits else commands.APPROVED,
            granted=granted,
            lasts=settings.decision if waits else granted,
            persistent=keeps,
            most_live=settings.most_live,
        )
        principal, before = self.call.principal, tuple[Command, ...]()
        if self.session_id and principal.agent_id is not None:
            # The session, which only the body may name, is extended, so that it lives when the synthesis is stored.
            bind = BindSession(self.session_id, principal.agent_id, principal.tls_identity or "", self.idle)
            before = (bind,)
        return Effects((*before, command), partial(_respond, written), committed)

    def reject(self, rejection: Rejection, negotiation_id: str) -> Effects:
        """Refuse with the reason, and remember what is offered instead."""
        details = describe(self.call, self.proposal.endpoint, rejection)
        counter, offered = rejection.counter, None
        if counter is not None:
            offered = read_proposal(details["counter_proposal"], self.call.routes.catalog)
        command = commands.FileProposal(
            **self._place(negotiation_id),
            document=to_json({"refusal": details}) if counter is None else _write(counter, refusal=details),
            session_id=self.session_id,
            state=commands.REJECTED,
            granted=commands.KEPT,
            lasts=commands.KEPT,
            counter_digest=offered.contract if isinstance(offered, Proposal) else None,
        )

        def respond(outcome: Sequence[Any] | Conflict) -> Refused:
            assert not isinstance(outcome, Conflict), "a rejection is always stored"
            filed: commands.Filed = outcome[-1]
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


def _write(contract: PlannedContract, **more: Any) -> str:
    return write_endpoint(contract.endpoint, contract.recipe, explanation=contract.explanation, **more)


def _respond(written: WrittenContract, outcome: Sequence[Any] | Conflict) -> Answer | Refused:
    if not isinstance(outcome, Conflict):
        row: commands.ProposalRow = outcome[-1].proposal  # an earlier one, if the agent has proposed the same before
        return answer(row, written.stored if row.document == written.document else None)
    if outcome.reason not in ("too-many", "too-large"):
        return refuse_session(outcome)
    unit = "living endpoints" if outcome.reason == "too-many" else "characters in the contracts of living endpoints"
    message = f"There may be {outcome.details['most']} {unit}; release one with SUSPEND first."
    return Refused(status.RATE_LIMITED, "too-many-syntheses", message, headers=(("Retry-After", "60"),))
