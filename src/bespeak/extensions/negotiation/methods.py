"""Negotiation of endpoints on one server: evaluates proposals, and stores what came of them (AGTP-API 10)."""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.http_route import as_text
from bespeak.contract.limits import MOST, Rate
from bespeak.contract.standard.definition import StandardMethod
from bespeak.contract.standard.floor import NEGOTIATED_ID_SCHEMA
from bespeak.extensions.negotiation import outcome
from bespeak.extensions.negotiation import store as commands
from bespeak.extensions.negotiation.evaluation import IMPOSSIBLE, Evaluation, Rejection, is_admitted
from bespeak.extensions.negotiation.outcome import Filing, WrittenContract
from bespeak.extensions.negotiation.plan import Impossible, Plan, PlannedContract
from bespeak.extensions.negotiation.planner.planner import Planner
from bespeak.extensions.negotiation.proposal import check_conformance, read_proposal
from bespeak.extensions.negotiation.settings import NegotiationSettings
from bespeak.extensions.negotiation.syntheses import Syntheses, register
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import NEGOTIATION_ID, SESSION_ID
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.additions import StoredEndpoint, read_endpoint
from bespeak.runtime.answer import Answer, Effects
from bespeak.runtime.call import RoutedCall, may_discover
from bespeak.runtime.concurrency import OverloadedError, run_in_thread
from bespeak.runtime.handling import effects
from bespeak.runtime.methods.lifecycle import NO_SYNTHESIS
from bespeak.runtime.rate import Buckets, caller, network
from bespeak.runtime.registration import Registrar
from bespeak.runtime.route_table import RouteTable
from bespeak.state.store.settings import SessionSettings
from bespeak.state.store.store import Store
from bespeak.text.diagnostics.diagnostic import Diagnostic

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
        self._planner: tuple[RouteTable, list[Endpoint], Planner] | None = None

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
        if known.rejections >= outcome.MOST_TURNS:
            return outcome.escalate(negotiation_id, known.rejections)
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
            return outcome.write_contract(judged) if isinstance(judged, PlannedContract) else judged

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
        """Return the planner of a table. It is built on first use, which is in a thread.

        It does not know the words of syntheses: what one agent has proposed must not change what others can. Nor
        does it know those of internal endpoints that no composition may call.
        """
        before = self._planner
        if before is not None and before[0] is routes:
            return before[2]
        endpoints = [
            route.endpoint
            for route in routes.steps.values()
            if not route.builtin and route.synthesis_id is None and is_admitted(self.settings, route.endpoint)
        ]
        planner = before[2] if before is not None and before[1] == endpoints else Planner(endpoints)
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
        similar = outcome.similar_endpoints(call, as_text(call.input))
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


_METHOD: Final = StandardMethod(
    name="QUERY",
    description="Answers with the state of a proposal of the caller: 261 while it is open, then 263 or 463.",
    intent="Query the state of a proposal.",
    outcome="The contract, the reason of the refusal, or the state of the evaluation is returned.",
    takes={"proposal_id": NEGOTIATED_ID_SCHEMA},
)
PROPOSAL_METHODS: Final = (("/proposals/{proposal_id}", _METHOD), ("/proposals", _METHOD))
"""Paths and their method: with the id in the path, or in the body as the reference implementation sends it."""


async def proposals(call: RoutedCall) -> Answer | Refused:
    """Answer QUERY /proposals. The proposals of other agents do not exist for the caller."""
    wanted = commands.ReadProposal(call.input["proposal_id"])
    row: commands.ProposalRow | None = await call.store.read(wanted)
    if row is None or row.agent_id != caller(call.principal, call.request.connection.address):
        message = "This agent has no proposal with this id; PROPOSE / returns it."
        return Refused(status.NOT_FOUND, "proposal-not-found", message)
    return outcome.answer(row)
