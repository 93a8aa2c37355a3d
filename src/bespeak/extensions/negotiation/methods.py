"""PROPOSE: evaluates proposals, stores what came of them, and answers: 263, 261 or 463 (AGTP-API 10, core 4.6)."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.http_route import as_text
from bespeak.contract.limits import MOST, Rate, write_duration
from bespeak.contract.standard.definition import StandardMethod
from bespeak.contract.standard.floor import NEGOTIATED_ID_SCHEMA
from bespeak.documents.projections.agtp_manifest import project_endpoint
from bespeak.extensions.negotiation import store as commands
from bespeak.extensions.negotiation.evaluation import IMPOSSIBLE, POLICY, Evaluation, Rejection, is_admitted
from bespeak.extensions.negotiation.plan import Impossible, Plan, PlannedContract
from bespeak.extensions.negotiation.planner.planner import FanOut, Planner
from bespeak.extensions.negotiation.proposal import Proposal, check_conformance, read_proposal
from bespeak.extensions.negotiation.settings import NegotiationSettings
from bespeak.extensions.negotiation.syntheses import Syntheses, register
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import MEDIA_AGTP, MEDIA_ENDPOINT, NEGOTIATION_ID, SESSION_ID
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.additions import StoredEndpoint, read_endpoint, write_endpoint
from bespeak.runtime.answer import Answer, Effects
from bespeak.runtime.call import Call, RoutedCall, may_discover
from bespeak.runtime.concurrency import OverloadedError, run_in_thread
from bespeak.runtime.handling import effects, to_json
from bespeak.runtime.methods.lifecycle import NO_SYNTHESIS
from bespeak.runtime.rate import Buckets, caller, network
from bespeak.runtime.registration import Registrar
from bespeak.runtime.route_table import RouteTable
from bespeak.runtime.sessions import refuse_session
from bespeak.state.store.commands.sessions import BindSession
from bespeak.state.store.settings import SessionSettings
from bespeak.state.store.store import Command, Conflict, Store
from bespeak.text.diagnostics.diagnostic import Diagnostic

MOST_TURNS: Final = 3  # rejections of a negotiation after which the agent must ESCALATE (AGTP-API 10.2)
_SIMILAR: Final = 3
_ESCALATE: Final = "Three proposals of this negotiation were rejected; ESCALATE to a person instead of proposing again."

_encode = msgspec.json.Encoder().encode


def answer_proposal(row: commands.ProposalRow, stored: StoredEndpoint | None = None) -> Answer | Refused:
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
        return refuse_proposal(row, msgspec.json.decode(row.document).get("refusal", by_operator))
    said = f": {row.reason}" if row.reason else ""
    message = f"The proposal {row.proposal_id} is {row.state}{said}; propose the endpoint again."
    return Refused(status.GONE, "proposal-ended", message, {"proposal_id": row.proposal_id, "state": row.state})


def refuse_proposal(row: commands.ProposalRow, details: Mapping[str, Any], rejections: int = 0) -> Refused:
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


def describe_rejection(call: Call, proposed: Endpoint, rejection: Rejection) -> dict[str, Any]:
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
        details = describe_rejection(self.call, self.proposal.endpoint, rejection)
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
            return refuse_proposal(filed.proposal, details, filed.rejections)

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
        return answer_proposal(row, written.stored if row.document == written.document else None)
    if outcome.reason not in ("too-many", "too-large"):
        return refuse_session(outcome)
    unit = "living endpoints" if outcome.reason == "too-many" else "characters in the contracts of living endpoints"
    message = f"There may be {outcome.details['most']} {unit}; release one with SUSPEND first."
    return Refused(status.RATE_LIMITED, "too-many-syntheses", message, headers=(("Retry-After", "60"),))


_logger = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")

MOST_CONTENT: Final = 64 * 1024  # maximum bytes of a proposal
_AGENTS_OF_NETWORK: Final = 10
"""Agents whose identities are not verified and that may propose from one address at the full rate of an agent."""
_MOST_WAITING: Final = 32  # maximum number of proposals that are evaluated or wait for it, in one process
_MOST_THREADS: Final = 2  # evaluations at the same time: handlers that block use the same threads
_NEGOTIATION: Final = re.compile(r"[\x21-\x7e]{1,128}")
_TOO_LARGE: Final = Refused(
    status.CONTENT_TOO_LARGE,
    "proposal-too-large",
    f"A proposal must not be larger than {MOST_CONTENT // 1024} KiB.",
    {"max_bytes": MOST_CONTENT},
)
_BUSY: Final = Refused(
    status.RATE_LIMITED,
    "proposal-in-progress",
    "An earlier proposal of this agent is being evaluated, or the server evaluates too many; try again later.",
    headers=(("Retry-After", "1"),),
)
_FAILED: Final = Rejection(
    reason=IMPOSSIBLE,
    explanation="The search for a composition failed by a fault of this server, which its operator finds in the log "
    "under the proposal_id. Propose another contract, or ESCALATE.",
)


class Negotiator:
    """Answers PROPOSE. Proposals of one agent are evaluated one after the other, and not more often than allowed."""

    def __init__(
        self,
        registrar: Registrar,
        store: Store,
        syntheses: Syntheses,
        settings: NegotiationSettings,
        sessions: SessionSettings,
    ) -> None:
        self.syntheses = syntheses
        self.settings = settings
        self._registrar = registrar
        self._store = store
        self._sessions = sessions
        self._agents = Buckets(settings.rate, time.monotonic_ns)
        count, burst = (min(one * _AGENTS_OF_NETWORK, MOST) for one in (settings.rate.count, settings.rate.burst))
        self._networks = Buckets(Rate(count, settings.rate.unit, burst), time.monotonic_ns)
        self._evaluating: set[str] = set()
        self._threads = asyncio.Semaphore(_MOST_THREADS)
        self._building = threading.Lock()
        self._planner: tuple[RouteTable, list[Endpoint], Planner] | None = None

    def prepare(self, routes: RouteTable) -> None:
        """Build the planner beside other work: for 1,500 endpoints it takes seconds."""

        def build() -> None:
            try:
                self._planner_of(routes)
            except Exception:
                _logger.warning("the planner could not be built; the first proposal tries again", exc_info=True)

        threading.Thread(target=build, name="planner", daemon=True).start()

    async def propose(self, call: RoutedCall) -> Answer | Effects | Refused:
        owner = caller(call.principal, call.request.connection.address)
        wait = self._agents.take(owner)
        if call.principal.verified is None:  # such Agent-IDs can be invented
            wait = wait or self._networks.take(network(call.request.connection.address))
        if wait:
            message = f"An agent may propose {self.settings.rate}, and one address not much more; try again later."
            headers = (("Retry-After", str(-(-wait // 1_000_000_000))),)
            return Refused(status.RATE_LIMITED, "proposals-rate-limited", message, headers=headers)
        if len(call.request.body) > MOST_CONTENT:
            return _TOO_LARGE
        if owner in self._evaluating or len(self._evaluating) >= _MOST_WAITING:
            return _BUSY
        self._evaluating.add(owner)
        try:
            return await self._evaluate(call, owner)
        finally:
            self._evaluating.discard(owner)

    async def _evaluate(self, call: RoutedCall, owner: str) -> Answer | Effects | Refused:
        routes = call.routes
        proposal = read_proposal(call.input, routes.catalog)
        if isinstance(proposal, Refused):
            return proposal
        given = call.request.headers.get(NEGOTIATION_ID) or call.input.get("negotiation_id") or ""
        if not self.settings.persistent or call.agent_id is None:
            # AGTP-API 10.5: persistence is refused independently of the synthesis.
            proposal = replace(proposal, persistent=False)
        session_id = call.request.headers.get(SESSION_ID) or proposal.session_id or ""
        filing = Filing(
            call=call,
            proposal=proposal,
            owner=owner,
            session_id="" if call.agent_id is None else session_id,
            settings=self.settings,
            idle=self._sessions.idle,
        )
        # Reading every text of a large proposal takes a tenth of a second.
        checked = await self._attempt(filing, check_conformance, proposal, routes.catalog, routes.policies)
        if isinstance(checked, Refused):
            return checked
        if given and not (isinstance(given, str) and _NEGOTIATION.fullmatch(given)):
            message = "The Negotiation-ID is not valid; send the one that this server has issued."
            return Refused(status.BAD_REQUEST, "invalid-negotiation-id", message)
        known: commands.NegotiationHistory = await self._store.read(filing.find(given))
        negotiation_id = given or known.negotiation_id or str(uuid.uuid4())
        if known.rejections >= MOST_TURNS:
            return escalate(negotiation_id, known.rejections)
        judged = checked or await self._judge(filing, known.offered)
        if isinstance(judged, Refused):
            headers = (*judged.headers, ("Negotiation-ID", negotiation_id))
            details = {**judged.details, "negotiation_id": negotiation_id}
            return msgspec.structs.replace(judged, details=details, headers=headers)
        if isinstance(judged, Rejection):
            return filing.reject(judged, negotiation_id)
        stored = judged.stored
        fits = proposal.persistent and self.syntheses.additions.fits(stored.endpoint, stored.recipe)
        committed, keeps = partial(self.syntheses.admit, judged.document, stored), fits and judged.is_public
        return filing.approve(judged, negotiation_id, keeps=keeps, was_revoked=known.revoked, committed=committed)

    async def _judge(self, filing: Filing, offered: str | None) -> WrittenContract | Rejection | Refused:
        """Run the evaluations that search, in a thread; `offered` is a counter-proposal that the agent accepts."""
        call = filing.call

        def search(proposed: Endpoint, usable: Callable[[Endpoint], bool]) -> Plan | Impossible:
            depth = call.routes.policies.max_synthesis_depth
            planner = self._planner_of(call.routes)
            return planner.plan(proposed, usable, depth=depth, expansions=self.settings.expansions)

        def check(contract: PlannedContract) -> list[Diagnostic]:
            stored = StoredEndpoint(endpoint=contract.endpoint, recipe=contract.recipe)
            return register(self._registrar, stored, call.routes)[1]

        evaluation = Evaluation(
            call=call,
            proposal=filing.proposal,
            settings=self.settings,
            recipes={recipe.name: recipe for recipe in self._registrar.service.recipes},
            search=search,
            register=check,
        )

        def judge() -> WrittenContract | Rejection | Refused:
            judged = evaluation.judge(None if offered is None else _read_offer(call, offered))
            return write_contract(judged) if isinstance(judged, PlannedContract) else judged

        return await self._attempt(filing, judge)

    async def _attempt(self, filing: Filing, evaluate: Callable[..., ResultT], *arguments: Any) -> ResultT | Rejection:
        """Run an evaluation in a thread. One that fails cannot be answered with yes, so the proposal is rejected."""
        try:
            async with self._threads:
                return await run_in_thread(evaluate, *arguments)
        except OverloadedError:
            raise  # it was not evaluated
        except Exception:
            _logger.exception("the evaluation of %s failed: %s", filing.proposal_id, filing.proposal.endpoint)
            return _FAILED

    def _planner_of(self, routes: RouteTable) -> Planner:
        """Return the planner of a table. It is built when the server starts, in a thread, or on first use.

        It does not know the words of syntheses: what one agent has proposed must not change what others can. Nor
        does it know those of internal endpoints that no composition may call.
        """
        with self._building:
            before = self._planner
            if before is not None and before[0] is routes:
                return before[2]
            endpoints = [
                route.endpoint
                for route in routes.steps.values()
                if not route.builtin and route.synthesis_id is None and is_admitted(self.settings, route.endpoint)
            ]
            fan_out = FanOut(self.settings.most_rows, self.settings.failed_row)
            planner = before[2] if before is not None and before[1] == endpoints else Planner(endpoints, fan_out)
            self._planner = (routes, endpoints, planner)
            return planner


def _read_offer(call: RoutedCall, document: str) -> Plan | None:
    """Return the plan of a counter-proposal that this server made, if its endpoints are still there."""
    stored, _ = read_endpoint(document, "counter-proposal")
    if stored is None or stored.recipe is None:
        return None
    routes = [call.routes.steps.get(step.endpoint) for step in stored.recipe.steps]
    endpoints = tuple(route.endpoint for route in routes if route is not None)
    if len(endpoints) < len(routes):
        return None
    # Its quality is in the confidence of the counter-proposal, which the agent has accepted.
    return Plan(recipe=stored.recipe, endpoints=endpoints, quality=1.0, explanation=stored.explanation)


def propose(call: RoutedCall) -> Refused | Coroutine[Any, Any, Answer | Effects | Refused]:
    """Answer PROPOSE /. A server whose policy says `synthesis_enabled: false` refuses, and names what it has (8.7)."""
    negotiator: Negotiator | None = call.server.part("negotiation")
    if negotiator is not None:
        return negotiator.propose(call)
    explanation = "This server does not negotiate endpoints: its policy says synthesis_enabled is false."
    details: dict[str, Any] = {"reason": "synthesis-disabled", "explanation": explanation}
    if may_discover(call):
        # AGTP-API 10.2, step 5b: similar entries of the manifest, for callers that may see it.
        similar = similar_endpoints(call, as_text(call.input))
        if similar:
            details["similar_endpoints"] = similar
    return Refused(status.PROPOSAL_REJECTED, "proposal-rejected", explanation, details)


_OF_ANOTHER: Final = Refused(
    status.FORBIDDEN, "synthesis-of-another", "The synthesis belongs to another agent, which alone may release it."
)


def release_synthesis(call: RoutedCall, synthesis_id: str) -> Effects:
    """End a synthesis of the caller, or withdraw a proposal that is pending or rejected."""

    def result(results: Sequence[commands.ProposalRow]) -> dict[str, Any]:
        return {"synthesis_id": results[0].synthesis_id, "synthesis_cleared": True, "status": results[0].state}

    agent = caller(call.principal, call.request.connection.address)
    command = commands.ReleaseSynthesis(commands.proposal_id_of(synthesis_id), agent)
    own = call.server.own_endpoints
    assert own is not None, "the kernel has asked"
    return effects([command], result, {"of-another": _OF_ANOTHER, "": NO_SYNTHESIS}, own.refresh)


_LISTED: Final = 100  # most proposals of an agent that are listed, newest first


def _summarize(row: commands.ProposalRow) -> dict[str, Any]:
    names = ("proposal_id", "negotiation_id", "method", "path", "state", "persistent")
    found = {name: getattr(row, name) for name in names}
    if row.state == commands.APPROVED:
        found["synthesis_id"] = row.synthesis_id
    return {**found, "created": write_instant(row.created), "expires_at": write_instant(row.expires)}


_METHOD: Final = StandardMethod(
    name="QUERY",
    description="Answers with the state of a proposal of the caller: 261 while it is open, then 263 or 463.",
    intent="Query the state of a proposal.",
    outcome="The contract, the reason of the refusal, or the state of the evaluation is returned.",
    takes={"proposal_id": NEGOTIATED_ID_SCHEMA},
)
_LISTING: Final = replace(
    _METHOD,
    description=f"{_METHOD.description} Without an id: lists the proposals of the caller, newest first.",
    takes={"proposal_id?": NEGOTIATED_ID_SCHEMA},
)
PROPOSAL_METHODS: Final = (("/proposals/{proposal_id}", _METHOD), ("/proposals", _LISTING))
"""Paths and their method: with the id in the path, or in the body as the reference implementation sends it."""


async def proposals(call: RoutedCall) -> Answer | Refused:
    """Answer QUERY /proposals. The proposals of other agents do not exist for the caller."""
    agent = caller(call.principal, call.request.connection.address)
    if "proposal_id" not in call.input:
        own: list[commands.ProposalRow] = await call.store.read(commands.ListProposals(None, _LISTED, agent_id=agent))
        return Answer(_encode({"proposals": [_summarize(row) for row in own]}))
    wanted = commands.ReadProposal(call.input["proposal_id"])
    row: commands.ProposalRow | None = await call.store.read(wanted)
    if row is None or row.agent_id != agent:
        message = "This agent has no proposal with this id; PROPOSE / returns it."
        return Refused(status.NOT_FOUND, "proposal-not-found", message)
    return answer_proposal(row)
