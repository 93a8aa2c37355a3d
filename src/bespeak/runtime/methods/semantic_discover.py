"""DISCOVER with criteria on a server with a semantic layer: candidates by meaning come first (IoA 8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from bespeak.documents.envelope.writer import write_envelope
from bespeak.runtime.answer import Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.candidate_filter import read_filter
from bespeak.runtime.semantic.discovery import MeaningIndex, read_wanted
from bespeak.runtime.semantic.layer import SemanticLayer
from bespeak.runtime.semantic.own_ontology import own_profile


def discovering(discover: Callable[[RoutedCall], Any]) -> Callable[[RoutedCall], Any]:
    """Build the handler of DISCOVER, around the one that searches by words."""

    def handle(call: RoutedCall) -> Any:
        answer = discover(call)
        if not isinstance(answer, Envelope) or "candidates" not in answer.result:
            return answer
        layer: SemanticLayer = call.server.semantic
        index = layer.view.index
        by_words = [one for one in answer.result["candidates"] if _shows(call, index, one)]
        wanted = read_wanted(call.input.get("criteria"))
        if wanted is None:
            return msgspec.structs.replace(answer, result={"candidates": by_words})
        admits = read_filter(call.input.get("filter", {}), call.server.agents.get(call.agent_id)).admits_endpoint
        operator = call.routes.service.identity.operator
        found = [one for one in index.find(wanted, call.principal) if admits(one.endpoint, operator)]
        known = {one.endpoint.key for one in found}
        others = [_with_profile(call, one) for one in by_words if _key(one) not in known]
        limit = call.input.get("max_results", 20)
        candidates = [*(index.document(one) for one in found), *others][:limit]
        return msgspec.structs.replace(answer, result={"candidates": candidates})

    return handle


def _shows(call: RoutedCall, index: MeaningIndex, candidate: dict[str, Any]) -> bool:
    endpoint = call.routes.endpoints.get(_key(candidate))
    return endpoint is None or index.shows(endpoint, call.principal)


def _with_profile(call: RoutedCall, candidate: dict[str, Any]) -> dict[str, Any]:
    """Add the profile to call an endpoint with, in the vocabulary of the service itself; words are not a match."""
    endpoint, snapshot = call.routes.endpoints.get(_key(candidate)), call.server.semantic.snapshot
    if endpoint is None or snapshot.own is None:
        return candidate
    profile = own_profile(call.routes.service, endpoint, snapshot.own)
    envelope = write_envelope(profile, namespace=snapshot.namespace)
    return {**candidate, "match": "unmatched", "confidence": 0.0, "semantic": envelope}


def _key(candidate: dict[str, Any]) -> tuple[str, str]:
    return candidate.get("method", ""), candidate.get("path", "")
