"""The twelve floor methods as data: purpose and parameters of each (core 4), and the constraints of DISCOVER."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from bespeak.contract.agent import DEFAULT_ZONE, ORG_ASSERTED, Agent
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.standard import definition as d
from bespeak.contract.standard.definition import MethodError, StandardMethod
from bespeak.protocol import status
from bespeak.protocol.exchange.principal import Scopes

_TEXTS: Final[Mapping[str, Any]] = {
    "type": ["string", "array"],
    "items": {"type": "string", "minLength": 1},
    "minLength": 1,
    "maxItems": 50,
}
FILTER_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "capabilities": _TEXTS,
        "scopes": _TEXTS,
        "tier": {"type": "integer", "minimum": 1, "maximum": 3},
        "geography": _TEXTS,
        "principal": {"type": "string", "minLength": 1},
    },
    "additionalProperties": False,
}  # schema of `filter`. Each member is a constraint; what cannot be shown to meet all of them is left out.


class CandidateFilter(msgspec.Struct, frozen=True):
    """What the candidates must meet."""

    zone: str = DEFAULT_ZONE  # zone of the caller; agents of others are not found, unless of the default zone
    capabilities: frozenset[str] = frozenset()  # an endpoint has one of them, an agent all
    scopes: tuple[str, ...] = ()  # an endpoint requires no others, an agent accepts all
    tier: int | None = None  # lowest trust: a lower number is stronger (core 7.4)
    geography: frozenset[str] = frozenset()
    principal: str | None = None

    def admits_endpoint(self, endpoint: Endpoint, operator: str) -> bool:
        """Return True if an endpoint of an operator meets the constraints; it has no tier and no geography."""
        return (
            self.tier is None
            and not self.geography
            and (not self.capabilities or endpoint.semantic.capability.casefold() in self.capabilities)
            and (not self.scopes or not Scopes(self.scopes).missing(list(endpoint.required_scopes)))
            and (self.principal is None or operator.casefold() == self.principal)
        )

    def admits_agent(self, agent: Agent) -> bool:
        """Return True if an agent meets the constraints and is in a zone that the caller is permitted."""
        said = agent.document
        return (
            agent.governance_zone in (DEFAULT_ZONE, self.zone)
            and self.capabilities <= {*_texts(said.get("capabilities")), *_texts(said.get("skills"))}
            and (not self.scopes or not Scopes(agent.scopes).missing(list(self.scopes)))
            and (self.tier is None or (agent.trust_tier or ORG_ASSERTED) <= self.tier)
            and (not self.geography or not self.geography.isdisjoint(_texts(said.get("geography"))))
            and (
                self.principal is None
                or self.principal in (agent.principal.casefold(), (agent.principal_id or "").casefold())
            )
        )


def read_filter(given: Mapping[str, Any], caller: Agent | None) -> CandidateFilter:
    """Read a valid `filter` of a caller; the caller is None if this server has no document of it."""
    principal = given.get("principal")
    return CandidateFilter(
        zone=DEFAULT_ZONE if caller is None else caller.governance_zone,
        capabilities=frozenset(_texts(given.get("capabilities"))),
        scopes=tuple(_texts(given.get("scopes"))),
        tier=given.get("tier"),
        geography=frozenset(_texts(given.get("geography"))),
        principal=None if principal is None else principal.casefold(),
    )


def _texts(value: object) -> Iterable[str]:
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else ()
    return [part.strip().casefold() for part in parts if isinstance(part, str)]


ID_SCHEMA: Final[Mapping[str, Any]] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}  # an Agent-ID or an Audit-ID
NEGOTIATED_ID_SCHEMA: Final[Mapping[str, Any]] = {"type": "string", "pattern": "^[!-~]{1,128}$"}
"""Schema of the id of a proposal or a synthesis: it is looked up, and PostgreSQL takes no NUL."""
FORMAT_SCHEMA: Final = d.one_of("manifest", "json", "certificate", "status")  # a document about an agent (core 3)
_members = partial(
    d.members,
    TEXT_OR_OBJECT={"type": ["string", "object"]},
    TEXT_OR_LIST={"type": ["string", "array"]},
    FILTER=FILTER_SCHEMA,
    FORMAT=FORMAT_SCHEMA,
    NEGOTIATED_ID=NEGOTIATED_ID_SCHEMA,
)
_method = partial(StandardMethod, impact="reversible", idempotent=False)
FLOOR: Final[tuple[StandardMethod, ...]] = (
    StandardMethod(
        name="QUERY",
        description="Answers a question from the content this server has registered.",
        intent="Find content that answers a stated need for information.",
        outcome="Matching content is returned, each piece with its source and a confidence.",
        takes=_members(
            "intent: TEXT_OR_OBJECT, scope?: TEXT_OR_LIST, format?: structured | natural | raw, "
            "confidence_threshold?: SHARE, modality?: mcp.resource, mcp_resource_uri?: TEXT"
        ),
    ),
    StandardMethod(
        name="DISCOVER",
        description="Returns the server manifest, or the endpoints and agents that meet the criteria.",
        intent="Find endpoints and agents to talk to on this server.",
        outcome="The manifest or a ranked list of candidates is returned.",
        takes=_members(
            "criteria?: TEXT_OR_OBJECT, filter?: FILTER, max_results?: 1..1000, target?: manifest | methods | agents"
        ),
    ),
    StandardMethod(
        name="DESCRIBE",
        description="Describes what this server can do, or who an agent is: the one named, or the one that calls.",
        intent="Describe the capabilities of this server.",
        outcome="A capability document or an identity document is returned.",
        takes=_members("agent_id?: TEXT, format?: FORMAT, capability_domains?: TEXT_OR_LIST, version_min?: TEXT"),
    ),
    StandardMethod(
        name="SUMMARIZE",
        description="Condenses a source to what matters for a reader.",
        intent="Summarize the given source.",
        outcome="A summary of the source is returned with the hash of what was read.",
        # A text, texts, rows, or a collection by its name, alone or with a filter.
        takes={
            "source": {**d.ROWS, "items": {"type": ["string", "object"]}, "minItems": 1, "maxLength": 1_000_000},
            **_members("length?: brief | standard | detailed, focus?: TEXT, format?: bullets | prose | structured"),
            **_members("audience?: TEXT, engine?: extractive | model"),
        },
        returns=_members(
            "summary: ANYTHING, method: NAME, confidence: SHARE, source_hash: NAME, sentences: COUNT, engine: NAME,"
            "deterministic: FLAG, not_applied?: [NAME], collection?: NAME, model?: NAME, usage?: OBJECT"
        ),
        errors=(*d.READING, *d.ASKING),
    ),
    StandardMethod(
        name="PLAN",
        description="Lays out the steps towards a goal without taking any of them.",
        intent="Plan the calls that reach a stated goal.",
        outcome="An ordered list of calls is returned; nothing has been executed.",
        takes=_members("goal: TEXT_OR_OBJECT, constraints?: TEXT_OR_OBJECT, available_methods?: TEXT_OR_LIST"),
    ),
    _method(
        name="PROPOSE",
        description="Takes the proposal of an endpoint that does not exist yet.",
        intent="Propose an endpoint for this server to synthesize.",
        outcome="The proposal is approved, put under evaluation or rejected with a reason.",
        takes=dict.fromkeys(
            (
                *("proposal?", "endpoint?", "signature?", "parameters?", "semantic?", "handler?", "input_schema?"),
                *("output_schema?", "deprecated?", "proposed_method?", "name?", "method?", "path?", "description?"),
                *("namespace?", "intent?", "contract_version?", "session_id?", "requested_duration?", "persistent?"),
                *("scope_requested?", "required_scopes?", "errors?"),
            ),
            d.ANYTHING,
        ),
        takes_anything=True,
    ),
    _method(
        name="EXECUTE",
        description="Carries out an endpoint by the name of its tool, a procedure, a plan, or a tool call of MCP.",
        intent="Execute a named action with the given arguments.",
        outcome="The action has been carried out and its result is returned.",
        impact="irreversible",
        takes=d.members(
            "action?: TEXT, parameters?: OBJECT, payload?: ANYTHING, payload_type?: TEXT, idempotency_key?: TEXT, "
            "plan_id?: PLAN_ID, plan?: LIST_OR_OBJECT, timeout?: SECONDS",
            PLAN_ID={"type": "string", "pattern": "^plan-[0-9a-f]{32}$"},
            LIST_OR_OBJECT={"type": ["array", "object"]},
        ),
    ),
    _method(
        name="DELEGATE",
        description="Hands a task to another agent with part of the caller's authority.",
        intent="Delegate a task to another agent within the caller's authority.",
        outcome="A signed token is returned, by which the delegate acts with the authority it was given.",
        takes=_members(
            "target_agent_id: TEXT, task: TEXT_OR_OBJECT, authority_scope: TEXT_OR_LIST, delegation_token: TEXT, "
            "callback?: TEXT, deadline?: TEXT, depth?: 0..7"
        ),
        errors=(d.INVALID_TIME,),
        recorded=("target_agent_id", "authority_scope"),
    ),
    StandardMethod(
        name="ESCALATE",
        description="Passes a decision to somebody with the authority to take it.",
        intent="Escalate a decision the agent must not take alone.",
        outcome="The decision waits with its recipient and the task is paused.",
        impact="reversible",
        takes=_members(
            "task_id: TEXT, "
            "reason: confidence_threshold | scope_limit | ethical_flag | ambiguous_instruction | resource_unavailable, "
            "context: OBJECT, priority?: urgent | normal | low, recipient?: TEXT, deadline?: TEXT"
        ),
        errors=(
            d.INVALID_TIME,
            MethodError("unknown-recipient", status.NOT_FOUND, "Nobody has the name of the recipient."),
        ),
        recorded=("task_id", "reason", "recipient"),
    ),
    StandardMethod(
        name="CONFIRM",
        description="Accepts, rejects or defers something that waits for a decision.",
        intent="Confirm the outcome of a pending decision.",
        outcome="The decision is recorded with its time and an attestation id.",
        impact="irreversible",
        takes=_members(
            "target_id: TEXT, status: accepted | rejected | deferred, reason?: TEXT, attestation?: TEXT_OR_OBJECT"
        ),
        recorded=("target_id", "status"),
    ),
    _method(
        name="SUSPEND",
        description="Pauses the workflow of a session until it is resumed, or ends a synthesized endpoint.",
        intent="Suspend a session and keep its checkpoint.",
        outcome="The session is suspended and a single-use resumption nonce is returned.",
        takes=_members(
            "session_id?: TEXT, reason?: awaiting_input | resource_limit | scheduled_pause | external_dependency, "
            "resume_by?: TEXT, checkpoint?: ANYTHING, synthesis_id?: NEGOTIATED_ID"
        ),
        errors=(d.INVALID_TIME,),
    ),
    _method(
        name="NOTIFY",
        description="Delivers a message to an agent, a person or a group.",
        intent="Notify a recipient of something that happened.",
        outcome="The message is accepted for delivery and a receipt is returned.",
        impact="irreversible",
        takes=_members(
            "recipient: TEXT, content: ANYTHING, urgency?: critical | informational | background, "
            "delivery_guarantee?: at_most_once | at_least_once | exactly_once, expiry?: TEXT, event?: TEXT, "
            "subscription_id?: TEXT"
        ),
        errors=(
            MethodError("unknown-recipient", status.NOT_FOUND, "Nothing is known of this recipient."),
            MethodError("subscription-not-found", status.NOT_FOUND, "The caller has no such monitor."),
            MethodError("guarantee-impossible", status.BAD_REQUEST, "The recipient cannot be reached exactly once."),
            d.NOT_LISTED,
            d.NOT_OWN_CHANNEL,
            d.INVALID_TIME,
            MethodError("delivery-unavailable", status.UNAVAILABLE, "The recipient has no room, or cannot be reached."),
        ),
    ),
)
