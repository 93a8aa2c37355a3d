"""DISCOVER, DESCRIBE and /agents: the documents, endpoints and agents of this server (core 3, 4.2, 4.3, 7.3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from bespeak.contract.agent import Agent, is_discoverable
from bespeak.contract.http_route import as_text
from bespeak.contract.standard.definition import StandardMethod
from bespeak.contract.standard.floor import FORMAT_SCHEMA, ID_SCHEMA, NEGOTIATED_ID_SCHEMA, read_filter
from bespeak.documents.projections.agent_documents import IDENTITY_TYPES
from bespeak.documents.projections.agtp_manifest import API_VERSION
from bespeak.protocol import status
from bespeak.protocol.exchange.header_values import UNITS
from bespeak.protocol.exchange.headers import AGENT_ID, MEDIA_IDENTITY, names_manifest, negotiate, prefers_agis
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.refusal import Refused, authorization_required
from bespeak.runtime.answer import Answer, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.extension import INSPECT_SYNTHESIS
from bespeak.runtime.handling import RefusedError, handler, invalid, passed, refusal, stateful
from bespeak.runtime.identity.principals import inactive
from bespeak.runtime.route_table import PublishedDocument, RouteTable
from bespeak.state.audit.record import KeptRecord, payload_of
from bespeak.state.store.commands.agents import ReadLifecycle
from bespeak.state.store.commands.audit import ReadAudit, ReadChainHead

_NAMED: Final[Mapping[str, Mapping[str, Any]]] = {"name": {"type": "string"}}
_DOCUMENTS: Final[tuple[tuple[str, str, str, str, Mapping[str, Mapping[str, Any]]], ...]] = (
    (
        "/agents",
        "Lists the agents this server hosts.",
        "Discover the agents of this server.",
        "The Agent Namespace Document is returned.",
        {},
    ),
    (
        "/agents/{name}",
        "Returns the identity document of an agent by its name.",
        "Find out who an agent of this server is.",
        "The identity document of the agent is returned.",
        {**_NAMED, "format?": FORMAT_SCHEMA},
    ),
    (
        "/agents/{name}/status",
        "Returns the lifecycle state of an agent by its name.",
        "Find out whether an agent of this server may act.",
        "The status document of the agent is returned.",
        _NAMED,
    ),
)

AGENT_METHODS: Final[tuple[tuple[str, StandardMethod], ...]] = tuple(
    (path, StandardMethod(name=name, description=description, intent=intent, outcome=outcome, takes=parameters))
    for path, description, intent, outcome, parameters in _DOCUMENTS
    for name in ("DISCOVER", "DESCRIBE")
)  # Core 13, 10: the prefix is reserved for these two methods only; operators may use it with all others

# Core 3:  agent-name = 1*( ALPHA / DIGIT / "-" / "_" )
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")


@handler
def agents(call: RoutedCall) -> Answer:
    name = call.input.get("name")
    if name is not None:
        if _NAME.fullmatch(name) is None:
            raise _refuse_name(call, name)
        return show_agent(call, call.server.agents.named(name), name)
    if call.routes.publication.discloses(call.principal):
        return call.routes.publication.namespace.answer(call.request)
    if call.routes.service.agent_disclosure == "authenticated":
        why = "This server discloses its agents only to authenticated callers"
        if call.server.principals.authenticator is None:
            nobody = f"{why}, and its mode `open` authenticates nobody."
            raise RefusedError(authorization_required("credentials-missing", nobody))
        raise RefusedError(call.server.principals.credentials_missing(why))
    raise refusal(status.FORBIDDEN, "agents-not-disclosed", "This server does not disclose its agents.")


def show_agent(call: RoutedCall, agent: Agent | None, wanted: str) -> Answer:
    """Return a document about an agent that the caller may see; to others it does not exist."""
    if agent is None or not may_see(call, agent) or agent.status in ("pending", "unreadable"):
        raise refusal(status.NOT_FOUND, "agent-not-found", f"This server hosts no agent {wanted[:80]!r}.")
    form = "status" if call.route.endpoint.path.endswith("/status") else call.input.get("format")
    publication = call.routes.publication
    if form == "status":
        return publication.status_of(agent).answer(call.request)
    passed(inactive(agent, call.server.agents.changed_at(agent.agent_id)))
    if form == "certificate":
        if agent.genesis is None:
            message = "The identity document of this agent has no genesis record."
            raise refusal(status.NOT_FOUND, "genesis-not-found", message)
        return PublishedDocument(agent.genesis.document, MEDIA_IDENTITY).answer(call.request)
    media_type = negotiate(call.request.headers, IDENTITY_TYPES)
    return publication.identity_of(agent, media_type, compact=form == "json").answer(call.request)


def _refuse_name(call: RoutedCall, name: str) -> RefusedError:
    """Redirect from a name with a file extension to the name itself (core 3); refuse what no agent can be called."""
    stem, dot, _ = name.partition(".")
    if not dot or _NAME.fullmatch(stem) is None:
        message = f"An agent's name has letters, digits, `-` and `_`; got {name[:80]!r}."
        return refusal(status.BAD_REQUEST, "invalid-uri-form", message)
    request = call.request
    path = call.route.endpoint.path.replace("{name}", stem)
    if request.connection.face != "agtp":
        path += f":{call.method.lower()}"
    location = path + (f"?{request.query}" if request.query else "")
    message = f"An agent's name has no file extension; the document is at {location[:300]}."
    headers = (("Location", location),)
    return RefusedError(
        Refused(status.MOVED_PERMANENTLY, "moved-permanently", message, {"location": location}, headers)
    )


def may_see(call: RoutedCall, agent: Agent) -> bool:
    """Return True if the caller may see an agent's document: its own once proven, others as disclosed."""
    caller = call.principal
    if caller.verified is not None and caller.agent_id == agent.agent_id:
        return True
    return call.routes.publication.discloses(caller) and is_discoverable(agent.trust_tier)


@handler
def discover(call: RoutedCall) -> Answer | Envelope | Refused:
    """Answer DISCOVER / (AGTP-API 8.10): without an Agent-ID the manifest, with criteria the candidates."""
    # AGIS 11 expects the AGIS document there; callers get it if they ask for it in `Accept`. Otherwise AGTP-API takes
    # precedence.
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
        message = (
            "DISCOVER with an Agent-ID searches for candidates and requires `criteria`; "
            "send no Agent-ID, or target 'manifest', for the manifest of this server."
        )
        raise refusal(status.UNPROCESSABLE, "missing-required-params", message, missing=["criteria"])
    limit = call.input.get("max_results", 20)
    disclosed = publication.discloses(call.principal)
    wanted = read_filter(call.input.get("filter", {}), call.server.agents.get(call.agent_id))
    found = publication.candidates.find(as_text(criteria), limit, agents=disclosed, wanted=wanted)
    return Envelope({"candidates": found})


def discover_methods(call: RoutedCall) -> Answer:
    return call.table.publication.inventory.answer(call.request)


DOMAINS: Final = ("methods", "modalities", "tools", "version", "budget", "zones")


@handler
def describe(call: RoutedCall) -> Answer | Envelope:
    """Answer DESCRIBE /: the identity document of a named agent or of the caller, else capabilities."""
    caller = call.principal
    wanted = call.input.get("agent_id")
    if wanted is not None:
        if not is_canonical_id(wanted):
            message = f"`agent_id` must be 64 lower-case hexadecimal digits; got {wanted[:80]!r}."
            raise refusal(status.BAD_REQUEST, "invalid-canonical-id", message)
        return show_agent(call, call.server.agents.get(wanted), wanted)
    agent = call.server.agents.get(caller.agent_id)
    asks = "capability_domains" in call.input or "version_min" in call.input
    if agent is not None and not asks and may_see(call, agent):
        return show_agent(call, agent, agent.agent_id)
    given = call.input.get("capability_domains")
    parts: Iterable[Any] = given.split(",") if isinstance(given, str) else given or ()
    asked = [str(part).strip() for part in parts]
    unknown = [domain for domain in asked if domain not in DOMAINS]
    if unknown:
        wrong = ", ".join(map(repr, unknown[:5]))
        message = f"{wrong} is not a valid capability domain; choose from {', '.join(DOMAINS)}."
        details: dict[str, Any] = {"unknown": unknown[:20], "capability_domains": list(DOMAINS)}
        raise refusal(status.UNPROCESSABLE, "unknown-capability-domain", message, **details)
    return Envelope(_capabilities(call.table, asked or DOMAINS, call.input.get("version_min")))


def _capabilities(routes: RouteTable, domains: Iterable[str], version_min: str | None) -> Mapping[str, Any]:
    listed = [endpoint for endpoint in routes.endpoints.values() if endpoint.is_listed]
    # AGTP-API 14.1: those that no person has confirmed yet are marked.
    unreviewed = [str(endpoint) for endpoint in listed if not endpoint.reviewed]
    priced = (endpoint for endpoint in routes.endpoints.values() if endpoint.cost and not endpoint.internal)
    used = {"calls"}.union(*(endpoint.cost.amounts for endpoint in priced if endpoint.cost))
    known: dict[str, dict[str, Any]] = {
        "methods": {"methods": routes.supported_methods},
        "modalities": {"modalities": ["application/json"]},
        "tools": {"tools": [str(one) for one in listed], **({"unreviewed": unreviewed} if unreviewed else {})},
        "version": {"version": API_VERSION},
        "budget": {"budget_units_accepted": [unit for unit in UNITS if unit in used]},
        "zones": {"zones_accepted": []},
    }
    document: dict[str, Any] = {}
    for domain in domains:
        document |= known[domain]
    if version_min is not None:
        document["version_min_satisfied"] = _numbers(API_VERSION) >= _numbers(version_min)
    return document


def _numbers(version: str) -> list[int]:
    return [int(part) if part.isdecimal() and len(part) < 10 else 0 for part in version.split(".")[:4]]


READ: Final = "audit:read"  # scope that lets a caller inspect records of other agents

_TELLING: Final = frozenset({"method", "requested_method", "path", "extra", "request_hash"})
"""Members of a record that say what was called: a hash can be compared with guesses."""

INSPECT: Final = StandardMethod(
    name="INSPECT",
    description="Shows a record of the audit trail, the head of an agent's chain, the changes of its state, or a "
    "synthesized contract.",
    intent="Inspect what this server has recorded about an agent.",
    outcome="The record or the events are returned; nothing has been changed.",
    takes={
        "target": {"type": "string", "enum": ["audit", "chain_head", "lifecycle", "contract"]},
        "audit_id?": ID_SCHEMA,
        "agent_id?": ID_SCHEMA,
        "synthesis_id?": NEGOTIATED_ID_SCHEMA,
    },
)


@stateful
async def inspect(call: RoutedCall) -> Envelope:
    store, target = call.store, call.input["target"]
    if target == "audit":
        row = await store.read(ReadAudit(_named(call, "audit_id", "the record")))
        _check_owner(call, KeptRecord(*row).agent_id if row is not None else "")
        return _show(call, row, "No record has this Audit-ID.")
    if target == "contract":
        synthesis_id = _named(call, "synthesis_id", "the contract")
        owner, described = await call.server.hooks[INSPECT_SYNTHESIS](store, synthesis_id)
        _check_owner(call, owner)
        if described is None:
            raise refusal(status.NOT_FOUND, "record-not-found", "No synthesis has this id.")
        return Envelope({"agent_id": owner, **described})
    agent_id: str = call.input.get("agent_id") or call.agent_id or ""
    _check_owner(call, agent_id)
    if target == "chain_head":
        return _show(call, await store.read(ReadChainHead(agent_id)), "There is no record of this agent.")
    events = await store.read(ReadLifecycle(agent_id))
    if not events:
        message = "There is no recorded change of this agent's state."
        raise refusal(status.NOT_FOUND, "agent-not-found", message)
    listed = [{**msgspec.structs.asdict(event), "at": write_instant(event.at)} for event in events]
    return Envelope({"agent_id": agent_id, "status": events[-1].status, "events": listed})


def _named(call: RoutedCall, member: str, what: str) -> str:
    if member not in call.input:
        raise invalid(member, f"is missing: it names {what} to inspect.")
    name: str = call.input[member]
    return name


def _check_owner(call: RoutedCall, agent_id: str) -> None:
    """Refuse what the caller may not see, whether or not it exists. Records of anonymous calls have no owner."""
    if call.agent_id != agent_id and not call.principal.scopes.covers(READ):
        message = f"The caller has no such record; only an agent with the scope {READ} may inspect others."
        raise refusal(status.FORBIDDEN, "inspection-forbidden", message, required_scopes=[READ])


def _show(call: RoutedCall, row: Any, otherwise: str) -> Envelope:
    if row is None:
        raise refusal(status.NOT_FOUND, "record-not-found", otherwise)
    record = KeptRecord(*row)
    place = {"audit_id": record.audit_id, "stream": record.stream, "sequence": record.sequence}
    payload = payload_of(record.jws)
    if payload is not None and not call.principal.scopes.covers(READ) and not _may_be_told(call, payload):
        told = {name: value for name, value in payload.items() if name not in _TELLING}
        return Envelope({**place, "record": told, "internal": True})
    return Envelope({**place, "record": payload, "attribution_record": record.jws})


def _may_be_told(call: RoutedCall, payload: Mapping[str, Any]) -> bool:
    """Return False for a step of a composition whose endpoint is internal, or can no longer be known not to be."""
    if "step" not in payload:
        return True
    route = call.routes.steps.get((payload["method"], payload.get("path", "")))
    return route is not None and not route.endpoint.internal
