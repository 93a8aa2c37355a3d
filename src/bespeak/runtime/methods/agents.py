"""/agents: the agents this server hosts and their identity documents (core 3, 7.3), where disclosed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from bespeak.contract.agent import Agent
from bespeak.contract.standard.method import StandardMethod
from bespeak.contract.trust import is_discoverable
from bespeak.documents.projections.identity_text import IDENTITY_TYPES
from bespeak.protocol import status
from bespeak.protocol.exchange.accept import negotiate
from bespeak.protocol.exchange.headers import MEDIA_IDENTITY
from bespeak.protocol.exchange.refusal import Refused, authorization_required
from bespeak.runtime.answer import Answer
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.methods.floor import FORMAT_SCHEMA
from bespeak.runtime.principals import inactive
from bespeak.runtime.publication import Document

_METHODS: Final = ("DISCOVER", "DESCRIBE")

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
        {**_NAMED, "format": FORMAT_SCHEMA},
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
    (
        path,
        StandardMethod(
            name=name,
            description=description,
            intent=intent,
            outcome=outcome,
            parameters=parameters,
            required=("name",) if parameters else (),
        ),
    )
    for path, description, intent, outcome, parameters in _DOCUMENTS
    for name in _METHODS
)
"""Core 13, 10: the prefix is reserved for these two methods only; operators may use it with all others."""

# Core 3:  agent-name = 1*( ALPHA / DIGIT / "-" / "_" )
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")


def agents(call: RoutedCall) -> Answer | Refused:
    """Answer at all of these paths."""
    name = call.input.get("name")
    if name is not None:
        if _NAME.fullmatch(name) is None:
            return _refuse_name(call, name)
        return show_agent(call, call.server.agents.named(name), name)
    if call.routes.publication.discloses(call.principal):
        return call.routes.publication.namespace.answer(call.request)
    if call.routes.service.agent_disclosure == "authenticated":
        why = "This server discloses its agents only to authenticated callers"
        if call.server.principals.authenticator is None:
            return authorization_required("credentials-missing", f"{why}, and its mode `open` authenticates nobody.")
        return call.server.principals.credentials_missing(why)
    return Refused(status.FORBIDDEN, "agents-not-disclosed", "This server does not disclose its agents.")


def show_agent(call: RoutedCall, agent: Agent | None, wanted: str) -> Answer | Refused:
    """Return a document about an agent that the caller may see; to others it does not exist."""
    if agent is None or not may_see(call, agent) or agent.status in ("pending", "unreadable"):
        return Refused(status.NOT_FOUND, "agent-not-found", f"This server hosts no agent {wanted[:80]!r}.")
    form = "status" if call.route.endpoint.path.endswith("/status") else call.input.get("format")
    publication = call.routes.publication
    if form == "status":
        return publication.status_of(agent).answer(call.request)
    refused = inactive(agent, call.server.agents.changed_at(agent.agent_id))
    if refused is not None:
        return refused
    if form == "certificate":
        if agent.genesis is None:
            message = "The identity document of this agent has no genesis record."
            return Refused(status.NOT_FOUND, "genesis-not-found", message)
        return Document(agent.genesis.document, MEDIA_IDENTITY).answer(call.request)
    media_type = negotiate(call.request.headers, IDENTITY_TYPES)
    return publication.identity_of(agent, media_type, compact=form == "json").answer(call.request)


def _refuse_name(call: RoutedCall, name: str) -> Refused:
    """Redirect from a name with a file extension to the name itself (core 3); refuse what no agent can be called."""
    stem, dot, _ = name.partition(".")
    if not dot or _NAME.fullmatch(stem) is None:
        message = f"An agent's name has letters, digits, `-` and `_`; got {name[:80]!r}."
        return Refused(status.BAD_REQUEST, "invalid-uri-form", message)
    request = call.request
    path = call.route.endpoint.path.replace("{name}", stem)
    if request.connection.face != "agtp":
        path += f":{call.method.lower()}"
    location = path + (f"?{request.query}" if request.query else "")
    message = f"An agent's name has no file extension; the document is at {location[:300]}."
    return Refused(
        status.MOVED_PERMANENTLY, "moved-permanently", message, {"location": location}, (("Location", location),)
    )


def may_see(call: RoutedCall, agent: Agent) -> bool:
    """Return True if the caller may see an agent's document: its own once proven, others as disclosed."""
    caller = call.principal
    if caller.verified is not None and caller.agent_id == agent.agent_id:
        return True
    return call.routes.publication.discloses(caller) and is_discoverable(agent.trust_tier)
