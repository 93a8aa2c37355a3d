"""DISCOVER: the manifest or the AGIS document for everybody, candidates for agents, the inventory at /methods."""

from __future__ import annotations

from collections.abc import Callable

from bespeak.protocol import status
from bespeak.protocol.exchange.accept import names_manifest, prefers_agis
from bespeak.protocol.exchange.context import Context
from bespeak.protocol.exchange.headers import AGENT_ID
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Answer, Envelope
from bespeak.runtime.methods.agents import agents
from bespeak.runtime.methods.publication import Publication
from bespeak.runtime.methods.relevance import as_text

_DEFAULT_RESULTS = 20


def discover(publication: Publication) -> Callable[[Context], Answer | Envelope | Refused]:
    """DISCOVER / of a server (AGTP-API 8.10): no Agent-ID asks for the manifest, criteria for candidates.

    AGIS 11 wants the AGIS document there; who says so in `Accept` gets it, for AGTP-API comes first otherwise.
    """

    name_agents = agents(publication)

    def answer(context: Context) -> Answer | Envelope | Refused:
        if prefers_agis(context.request.headers):
            return publication.agis_for(context.principal).answer(context.request)
        target = context.input.get("target")
        if target == "methods":
            return publication.inventory.answer(context.request)
        if target == "agents":
            return name_agents(context)
        criteria = context.input.get("criteria")
        # Who is known by a token or a certificate and sends no Agent-ID has not asked for candidates by that.
        unnamed = criteria is None and AGENT_ID not in context.request.headers
        meant = target == "manifest" or (criteria is None and names_manifest(context.request.headers))
        if meant or context.agent_id is None or unnamed:
            return publication.manifest_for(context.principal).answer(context.request)
        if criteria is None:
            return Refused(
                status.UNPROCESSABLE,
                "missing-required-params",
                "DISCOVER with an Agent-ID looks for candidates and needs `criteria`; "
                "send no Agent-ID, or target 'manifest', for the manifest of this server.",
                {"missing": ["criteria"]},
            )
        limit = context.input.get("max_results", _DEFAULT_RESULTS)
        disclosed = publication.discloses(context.principal)
        return Envelope({"candidates": publication.candidates.find(as_text(criteria), limit, agents=disclosed)})

    return answer


def discover_methods(publication: Publication) -> Callable[[Context], Answer]:
    """DISCOVER /methods (AGTP-API 5.8)."""

    def answer(context: Context) -> Answer:
        return publication.inventory.answer(context.request)

    return answer
