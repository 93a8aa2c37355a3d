"""DISCOVER: the manifest for everybody, candidates for agents, the compact inventory at /methods."""

from __future__ import annotations

from collections.abc import Callable

from bespeak import status
from bespeak.exchange.context import Context
from bespeak.exchange.refusal import Refused
from bespeak.methods.publication import Publication
from bespeak.methods.relevance import as_text
from bespeak.runtime.answer import Answer, Envelope

_DEFAULT_RESULTS = 20


def discover(publication: Publication) -> Callable[[Context], Answer | Envelope | Refused]:
    """DISCOVER / of a server (AGTP-API 8.10): no Agent-ID asks for the manifest, criteria for candidates."""

    def answer(context: Context) -> Answer | Envelope | Refused:
        target = context.input.get("target")
        if target == "methods":
            return publication.inventory.answer(context.request)
        if target == "manifest" or context.agent_id is None:
            return publication.manifest.answer(context.request)
        criteria = context.input.get("criteria")
        if criteria is None:
            return Refused(
                status.UNPROCESSABLE,
                "missing-required-params",
                "DISCOVER with an Agent-ID looks for candidates and needs `criteria`; "
                "send no Agent-ID, or target 'manifest', for the manifest of this server.",
                {"missing": ["criteria"]},
            )
        limit = context.input.get("max_results", _DEFAULT_RESULTS)
        return Envelope({"candidates": publication.candidates.find(as_text(criteria), limit)})

    return answer


def discover_methods(publication: Publication) -> Callable[[Context], Answer]:
    """DISCOVER /methods (AGTP-API 5.8)."""

    def answer(context: Context) -> Answer:
        return publication.inventory.answer(context.request)

    return answer
