"""DISCOVER: the manifest or the AGIS document for everyone, candidates for agents, the inventory at /methods."""

from __future__ import annotations

from bespeak.contract.http_value import as_text
from bespeak.protocol import status
from bespeak.protocol.exchange.accept import names_manifest, prefers_agis
from bespeak.protocol.exchange.headers import AGENT_ID
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Answer, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.candidate_filter import read_filter
from bespeak.runtime.methods.agents import agents

_DEFAULT_RESULTS = 20


def discover(call: RoutedCall) -> Answer | Envelope | Refused:
    """Answer DISCOVER / (AGTP-API 8.10): without an Agent-ID the manifest, with criteria the candidates.

    AGIS 11 expects the AGIS document there; callers get it if they ask for it in `Accept`. Otherwise AGTP-API takes
    precedence.
    """
    publication = call.table.publication
    if prefers_agis(call.request.headers):
        return publication.agis_for(call.principal).answer(call.request)
    target = call.input.get("target")
    if target == "methods":
        return publication.inventory.answer(call.request)
    if target == "agents":
        return agents(call)
    criteria = call.input.get("criteria")
    # A caller identified by token or certificate, without an Agent-ID header, has not asked for candidates.
    unnamed = criteria is None and AGENT_ID not in call.request.headers
    meant = target == "manifest" or (criteria is None and names_manifest(call.request.headers))
    if meant or call.agent_id is None or unnamed:
        return publication.manifest_for(call.principal).answer(call.request)
    if criteria is None:
        return Refused(
            status.UNPROCESSABLE,
            "missing-required-params",
            "DISCOVER with an Agent-ID searches for candidates and requires `criteria`; "
            "send no Agent-ID, or target 'manifest', for the manifest of this server.",
            {"missing": ["criteria"]},
        )
    limit = call.input.get("max_results", _DEFAULT_RESULTS)
    disclosed = publication.discloses(call.principal)
    wanted = read_filter(call.input.get("filter", {}), call.server.agents.get(call.agent_id))
    found = publication.candidates.find(as_text(criteria), limit, agents=disclosed, wanted=wanted)
    return Envelope({"candidates": found})


def discover_methods(call: RoutedCall) -> Answer:
    """Answer DISCOVER /methods (AGTP-API 5.8)."""
    return call.table.publication.inventory.answer(call.request)
