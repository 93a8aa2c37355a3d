"""DESCRIBE: what this server can do, or who a hosted agent is (core 4.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from bespeak.documents.projections.agtp_manifest import API_VERSION
from bespeak.protocol import status
from bespeak.protocol.exchange.budget import UNITS
from bespeak.protocol.exchange.context import Context
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Answer, Envelope
from bespeak.runtime.methods.agents import may_see, show_agent
from bespeak.runtime.methods.publication import Publication
from bespeak.runtime.registry import Registry

DOMAINS: Final = ("methods", "modalities", "tools", "version", "budget", "zones")


def describe(publication: Publication) -> Callable[[Context], Answer | Envelope | Refused]:
    """DESCRIBE / of a server: the identity document of a named agent or of the one that asks, else capabilities."""

    def answer(context: Context) -> Answer | Envelope | Refused:
        registry = publication.registry
        caller = context.principal
        wanted = context.input.get("agent_id")
        if wanted is not None:
            return show_agent(publication, context, registry.agents.get(wanted), wanted)
        agent = registry.agents.get(caller.agent_id)
        asks = "capability_domains" in context.input or "version_min" in context.input
        if agent is not None and not asks and may_see(publication, caller, agent):
            return show_agent(publication, context, agent, agent.agent_id)
        asked = _domains(context.input.get("capability_domains"))
        unknown = [domain for domain in asked if domain not in DOMAINS]
        if unknown:
            return Refused(
                status.UNPROCESSABLE,
                "unknown-capability-domain",
                f"{', '.join(map(repr, unknown[:5]))} is no capability domain; there are {', '.join(DOMAINS)}.",
                {"unknown": unknown[:20], "capability_domains": list(DOMAINS)},
            )
        return Envelope(_capabilities(registry, asked or DOMAINS, context.input.get("version_min")))

    return answer


def _domains(given: Any) -> list[str]:
    parts: Iterable[Any] = given.split(",") if isinstance(given, str) else given or ()
    return [str(part).strip() for part in parts]


def _capabilities(registry: Registry, domains: Iterable[str], version_min: str | None) -> Mapping[str, Any]:
    known: dict[str, dict[str, Any]] = {
        "methods": {"methods": registry.supported_methods},
        "modalities": {"modalities": ["application/json"]},
        "tools": {"tools": [str(endpoint) for endpoint in registry.endpoints.values() if endpoint.is_listed]},
        "version": {"version": API_VERSION},
        "budget": {"budget_units_accepted": _budget_units(registry)},
        "zones": {"zones_accepted": []},
    }
    document: dict[str, Any] = {}
    for domain in domains:
        document |= known[domain]
    if version_min is not None:
        document["version_min_satisfied"] = _numbers(API_VERSION) >= _numbers(version_min)
    return document


def _budget_units(registry: Registry) -> list[str]:
    """The units that a Budget-Limit can bound here: those some endpoint costs, and calls."""
    used = {unit for endpoint in registry.endpoints.values() if endpoint.cost for unit in endpoint.cost.amounts}
    return [unit for unit in UNITS if unit in used or unit == "calls"]


def _numbers(version: str) -> list[int]:
    return [int(part) if part.isdecimal() and len(part) < 10 else 0 for part in version.split(".")[:4]]
