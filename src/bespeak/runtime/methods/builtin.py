"""Every built-in endpoint of a server, as ordinary endpoints that an operator may override (AGTP-API 5.8)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from bespeak.contract.endpoint import DeclaredError, Endpoint, Semantic
from bespeak.contract.handler import RegisteredFunction
from bespeak.contract.ontology.settings import SemanticSettings
from bespeak.contract.schema.validation import DIALECT
from bespeak.contract.standard.definition import StandardMethod, object_of
from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import REQUIRES_RESOURCES, REQUIRES_STORE, RoutedCall, not_available
from bespeak.runtime.composition.step import StepTaker
from bespeak.runtime.floor import FLOOR
from bespeak.runtime.messages.methods_inbox import MESSAGES, messages
from bespeak.runtime.methods.cases import confirm, escalate
from bespeak.runtime.methods.delegate import delegate
from bespeak.runtime.methods.discovery import AGENT_METHODS, agents, describe, discover, discover_methods
from bespeak.runtime.methods.inspect import INSPECT, inspect
from bespeak.runtime.methods.lifecycle import CHANGES, lifecycle
from bespeak.runtime.methods.notify import notify
from bespeak.runtime.methods.query import query
from bespeak.runtime.methods.standard import HANDLERS, implemented
from bespeak.runtime.methods.suspension import resume, suspend
from bespeak.runtime.negotiation.methods import PROPOSAL_METHODS, proposals, propose
from bespeak.runtime.reports.methods import DOCUMENT_PATH, FETCH_DOCUMENT, fetch_document
from bespeak.runtime.workflows.methods_execute import execute
from bespeak.runtime.workflows.methods_plan import plan

MISSING: Final[Mapping[str, str]] = {
    "SUMMARIZE": "a summarizer",
}
"""Requirement of each method; an operator who can fulfil it binds the method to a handler at `/`."""

_STATEFUL: Final = frozenset(
    {
        *("DELEGATE", "ESCALATE", "CONFIRM", "SUSPEND", "NOTIFY", "RESUME", "INSPECT"),
        *(change.method.name for change in CHANGES),
    }
)


def find_missing(method: str, *, stored: bool, searchable: bool) -> str | None:
    """Return what a server lacks to carry out a built-in method at `/`; None if it works.

    All published documents say what this function says.
    """
    if method == "QUERY" and not searchable:
        return REQUIRES_RESOURCES
    return REQUIRES_STORE if method in _STATEFUL and not stored else MISSING.get(method)


def unavailable(method: str) -> Callable[[RoutedCall], Refused]:
    """Build the handler of a floor method that this server admits but cannot carry out."""
    advice = f" The operator of this server can bind {method} / to a handler."
    refused = not_available(method, MISSING[method], advice)

    def answer(_: RoutedCall) -> Refused:
        return refused

    return answer


_CONTEXT: Final[Mapping[str, Any]] = {"type": "object"}
"""Core 4: every floor method takes an optional `context` object."""

_RESUME: Final = replace(STANDARD["RESUME"], category="floor")
"""Every server resumes the sessions that it suspends; the method is published where it is enabled."""

_INVENTORY = StandardMethod(
    name="DISCOVER",
    description="Lists all registered endpoints on this server.",
    intent="Discover which endpoints this server has.",
    outcome="An array of every endpoint's method, path and description is returned.",
    parameters={},
)

_OBJECT_OUTPUT: Final[Mapping[str, Any]] = {"$schema": DIALECT, "type": "object", "additionalProperties": True}
_ARRAY_OUTPUT: Final[Mapping[str, Any]] = {
    "$schema": DIALECT,
    "type": "array",
    "items": {
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("method", "path", "description")},
        "required": ["method", "path", "description"],
    },
}


def builtin_endpoints(
    *,
    stored: bool = True,
    searchable: bool = False,
    negotiates: bool = False,
    enabled: Iterable[str] = (),
    semantic: SemanticSettings | None = None,
) -> list[Endpoint]:
    """List the endpoints of every server: floor, lifecycle of agents, INSPECT, RESUME, DISCOVER /methods, /agents.

    Standard methods are there if they are enabled. A server that negotiates also has QUERY /proposals, one with a store
    QUERY /messages. Methods that a server without a store, or without resources to search, cannot carry out say so.
    """
    handlers: dict[str, Callable[..., Any]] = {
        "QUERY": query,
        "DISCOVER": discover,
        "DESCRIBE": describe,
        "PLAN": plan,
        "PROPOSE": propose,
        "EXECUTE": StepTaker(execute),
        "DELEGATE": delegate,
        "ESCALATE": escalate,
        "CONFIRM": confirm,
        "SUSPEND": suspend,
        "NOTIFY": notify,
    }
    chosen = implemented(enabled)
    floor: Iterable[StandardMethod] = FLOOR
    if semantic is not None:
        floor = _with_meaning(handlers)
    at_root = [
        *((method, handlers.get(method.name) or unavailable(method.name)) for method in floor),
        *((change.method, lifecycle(change)) for change in CHANGES),
        (INSPECT, inspect),
        *(((_RESUME, resume),) if _RESUME.name not in chosen else ()),
    ]
    return [
        *(
            _with_missing(
                _endpoint(method, "/", handler), find_missing(method.name, stored=stored, searchable=searchable)
            )
            for method, handler in at_root
        ),
        _endpoint(_INVENTORY, "/methods", discover_methods, _ARRAY_OUTPUT),
        *(_endpoint(method, path, agents) for path, method in AGENT_METHODS),
        *(_endpoint(method, path, proposals) for path, method in PROPOSAL_METHODS if negotiates),
        *((_endpoint(MESSAGES, "/messages", messages),) if stored else ()),
        *(
            _with_missing(_endpoint(STANDARD[name], "/", HANDLERS[name]), None if stored else REQUIRES_STORE)
            for name in chosen
        ),
        # Documents exist where reports are made.
        *(
            replace(_endpoint(FETCH_DOCUMENT, DOCUMENT_PATH, fetch_document), enabled=True)
            for name in chosen
            if name == "REPORT" and stored
        ),
        *(_registry_endpoints(semantic) if semantic is not None and semantic.registry and stored else ()),
    ]


def _with_meaning(handlers: dict[str, Callable[..., Any]]) -> Iterable[StandardMethod]:
    """Extend the floor methods for a server with a semantic layer, whose modules most servers do not need."""
    from bespeak.runtime.semantic.methods import (  # noqa: PLC0415
        PARAMETERS,
        describing,
        discovering,
        proposing,
    )

    handlers["DISCOVER"] = discovering(handlers["DISCOVER"])
    handlers["DESCRIBE"] = describing(handlers["DESCRIBE"])
    handlers["PROPOSE"] = proposing(handlers["PROPOSE"])
    for method in FLOOR:
        extended = method.name in ("DESCRIBE", "PROPOSE")
        yield replace(method, parameters={**PARAMETERS, **method.parameters}) if extended else method


def _registry_endpoints(settings: SemanticSettings) -> Iterable[Endpoint]:
    """List the endpoints of the registry of ontologies, whose modules most servers do not need."""
    from bespeak.runtime.semantic import methods_ontologies as ontologies  # noqa: PLC0415
    from bespeak.runtime.semantic.registry import open_registry  # noqa: PLC0415

    register = ontologies.register_ontology(open_registry(settings))
    for method, handler in (
        (ontologies.QUERY_ONTOLOGIES, ontologies.query_ontologies),
        (ontologies.REGISTER_ONTOLOGY, register),
    ):
        yield replace(_endpoint(method, ontologies.PATH, handler), enabled=True)


def _endpoint(
    method: StandardMethod, path: str, handler: Callable[..., Any], output: Mapping[str, Any] | None = None
) -> Endpoint:
    return Endpoint(
        method=method.name,
        path=path,
        description=method.description,
        namespace=method.category,
        semantic=Semantic(
            intent=method.intent,
            actor="agent",
            outcome=method.outcome,
            capability="",  # inherited from the catalog, like that of any endpoint
            confidence=1.0,
            impact=method.impact,
            is_idempotent=method.idempotent,
        ),
        input_schema={
            "$schema": DIALECT,
            "type": "object",
            "properties": {"context": _CONTEXT, **method.parameters},
            **({"patternProperties": {"": {}}} if method.takes_anything else {}),
            "required": list(method.required),
            "additionalProperties": False,
        },
        output_schema=output or _output(method),
        errors=tuple(DeclaredError(error.name, error.description) for error in method.errors),
        required_scopes=method.scopes,
        handler=RegisteredFunction(function=f"bespeak.runtime.methods.{method.name.lower()}", target=handler),
        builtin=True,
        enabled=method.name in HANDLERS and method.category != "floor",
        passes_on=method.passes_on,
        recorded=method.recorded,
    )


def _output(method: StandardMethod) -> Mapping[str, Any]:
    """Return the schema of the envelope around a result (core 5.3)."""
    if method.result is None:
        return _OBJECT_OUTPUT
    return {
        "$schema": DIALECT,
        "type": "object",
        "properties": {
            "status": {"type": "integer"},
            "task_id": {"type": "string"},
            "result": object_of(method.result, *method.returned),
        },
        "required": ["status", "result"],
        "additionalProperties": True,
    }


def _with_missing(endpoint: Endpoint, missing: str | None) -> Endpoint:
    """Publish honestly that a method is not implemented: every document repeats description, outcome and confidence."""
    if missing is None:
        return endpoint
    return replace(
        endpoint,
        description=f"Not implemented on this server, which lacks {missing}. {endpoint.description}",
        semantic=replace(endpoint.semantic, outcome="Nothing is done; 501 names what is missing.", confidence=0.0),
        missing=missing,
    )
