"""DESCRIBE: the capabilities of this server, or the identity of a hosted agent (core 4.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.documents.projections.agtp_manifest import API_VERSION
from bespeak.protocol import status
from bespeak.protocol.exchange.budget import UNITS
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Answer, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.methods.agents import may_see, show_agent
from bespeak.runtime.route_table import RouteTable

DOMAINS: Final = ("methods", "modalities", "tools", "version", "budget", "zones")


def describe(call: RoutedCall) -> Answer | Envelope | Refused:
    """Answer DESCRIBE /: the identity document of a named agent or of the caller, else capabilities."""
    caller = call.principal
    wanted = call.input.get("agent_id")
    if wanted is not None:
        if not is_canonical_id(wanted):
            message = f"`agent_id` must be 64 lower-case hexadecimal digits; got {wanted[:80]!r}."
            return Refused(status.BAD_REQUEST, "invalid-canonical-id", message)
        return show_agent(call, call.server.agents.get(wanted), wanted)
    agent = call.server.agents.get(caller.agent_id)
    asks = "capability_domains" in call.input or "version_min" in call.input
    if agent is not None and not asks and may_see(call, agent):
        return show_agent(call, agent, agent.agent_id)
    asked = _domains(call.input.get("capability_domains"))
    unknown = [domain for domain in asked if domain not in DOMAINS]
    if unknown:
        return Refused(
            status.UNPROCESSABLE,
            "unknown-capability-domain",
            f"{', '.join(map(repr, unknown[:5]))} is not a valid capability domain; choose from {', '.join(DOMAINS)}.",
            {"unknown": unknown[:20], "capability_domains": list(DOMAINS)},
        )
    return Envelope(_capabilities(call.table, asked or DOMAINS, call.input.get("version_min")))


def _domains(given: Any) -> list[str]:
    parts: Iterable[Any] = given.split(",") if isinstance(given, str) else given or ()
    return [str(part).strip() for part in parts]


def _capabilities(routes: RouteTable, domains: Iterable[str], version_min: str | None) -> Mapping[str, Any]:
    known: dict[str, dict[str, Any]] = {
        "methods": {"methods": routes.supported_methods},
        "modalities": {"modalities": ["application/json"]},
        "tools": _tools([endpoint for endpoint in routes.endpoints.values() if endpoint.is_listed]),
        "version": {"version": API_VERSION},
        "budget": {"budget_units_accepted": _budget_units(routes)},
        "zones": {"zones_accepted": []},
    }
    document: dict[str, Any] = {}
    for domain in domains:
        document |= known[domain]
    if version_min is not None:
        document["version_min_satisfied"] = _numbers(API_VERSION) >= _numbers(version_min)
    return document


def _tools(listed: list[Endpoint]) -> dict[str, Any]:
    """List the endpoints, and those that no person has confirmed yet (AGTP-API 14.1)."""
    unreviewed = [str(endpoint) for endpoint in listed if not endpoint.reviewed]
    return {"tools": [str(endpoint) for endpoint in listed], **({"unreviewed": unreviewed} if unreviewed else {})}


def _budget_units(routes: RouteTable) -> list[str]:
    """List the units a Budget-Limit can limit here: those of declared costs, and calls."""
    used = {
        unit
        for endpoint in routes.endpoints.values()
        if endpoint.cost and not endpoint.internal
        for unit in endpoint.cost.amounts
    }
    return [unit for unit in UNITS if unit in used or unit == "calls"]


def _numbers(version: str) -> list[int]:
    return [int(part) if part.isdecimal() and len(part) < 10 else 0 for part in version.split(".")[:4]]
