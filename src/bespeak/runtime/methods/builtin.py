"""Every built-in endpoint of a server, as ordinary endpoints that an operator may override (AGTP-API 5.8)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from bespeak.contract.endpoint import IMPACTS, DeclaredError, Endpoint, Semantic
from bespeak.contract.handler import RegisteredFunction
from bespeak.contract.participant import ENTITY
from bespeak.contract.schema.validation import DIALECT
from bespeak.contract.service import Service
from bespeak.contract.standard.definition import StandardMethod, object_of
from bespeak.contract.standard.floor import FLOOR
from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol import status
from bespeak.runtime.call import REQUIRES_RESOURCES, REQUIRES_STORE
from bespeak.runtime.composition.step import ComposingMethod
from bespeak.runtime.extension import BuiltIn, Extension, Floor, Handler, handlers_of
from bespeak.runtime.methods import discovery
from bespeak.runtime.methods.cases import confirm, escalate
from bespeak.runtime.methods.delegate import delegate
from bespeak.runtime.methods.lifecycle import CHANGES, lifecycle, resume, suspend
from bespeak.runtime.methods.query import query

_STATEFUL: Final = frozenset(
    {
        *("DELEGATE", "ESCALATE", "CONFIRM", "SUSPEND", "NOTIFY", "RESUME", "INSPECT"),
        *(change.method.name for change in CHANGES),
    }
)


def find_missing(method: str, *, stored: bool, searchable: bool) -> str | None:
    """Return what a server lacks for a built-in method at `/`; None if it works. Published documents say the same."""
    if method == "QUERY" and not searchable:
        return REQUIRES_RESOURCES
    return REQUIRES_STORE if method in _STATEFUL and not stored else None


def find_unjoined(method: StandardMethod, service: Service, tables: Iterable[str] = ()) -> str | None:
    """Return what a service must have before it can carry out a standard method; None if nothing is missing."""
    kind, table = method.joined_by, method.needs_table
    if not (kind or table) or table in tables or any(one.kind == kind for one in service.participants):
        return None
    ways = [f"a {kind} (declare one with @app.{kind})"] if kind else []
    return " or ".join([*ways, f"[{table}] in bespeak.toml"] if table else ways)


_CONTEXT: Final[Mapping[str, Any]] = {"type": "object"}  # core 4: every floor method takes an optional `context` object
_RESUME: Final = replace(STANDARD["RESUME"], category="floor")  # sessions resume everywhere; published where enabled

_INVENTORY = StandardMethod(
    name="DISCOVER",
    description="Lists all registered endpoints on this server.",
    intent="Discover which endpoints this server has.",
    outcome="An array of every endpoint's method, path and description is returned.",
    takes={},
)

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
    service: Service,
    *,
    stored: bool = True,
    tables: Iterable[str] = (),
    extensions: Sequence[Extension] = (),
    floor_handlers: Mapping[str, Handler] = MappingProxyType({}),
    added: Iterable[BuiltIn] = (),
) -> list[Endpoint]:
    """List the endpoints of every server: floor, lifecycle of agents, INSPECT, RESUME, DISCOVER /methods, /agents.

    Standard methods are there if the service enables them and an extension carries them out. `floor_handlers` are
    those of floor methods that extensions carry out, `added` are endpoints of every server with a store, and `tables`
    those of its configuration. Methods that a server cannot carry out, for want of a store or anything else, say so.
    """
    basic: dict[str, Handler] = {
        "QUERY": query,
        "DISCOVER": discovery.discover,
        "DESCRIBE": discovery.describe,
        "DELEGATE": delegate,
        "ESCALATE": escalate,
        "CONFIRM": confirm,
        "SUSPEND": suspend,
        **floor_handlers,
    }
    if "EXECUTE" in basic:
        basic["EXECUTE"] = ComposingMethod(basic["EXECUTE"])
    standard = {**handlers_of(extensions), "RESUME": resume}
    wanted = set(service.methods)
    chosen = [name for name in STANDARD if name in wanted and name in standard]
    floor: Floor = [(method, basic[method.name]) for method in FLOOR]
    for extension in extensions:
        floor = floor if extension.floor is None else extension.floor(floor)
    at_root = [
        *floor,
        *((change.method, lifecycle(change)) for change in CHANGES),
        (discovery.INSPECT, discovery.inspect),
        *(((_RESUME, resume),) if _RESUME.name not in chosen else ()),
    ]
    searchable = bool(
        service.resources
        or service.data_manifest
        or "IMPORT" in chosen
        or any(one.kind == ENTITY for one in service.participants)
    )
    brought = [
        endpoint
        for extension in extensions
        if stored and extension.endpoints is not None
        for endpoint in extension.endpoints(service)
    ]
    brought += added if stored else ()
    own_methods = [pair for extension in extensions for pair in extension.own_methods]
    return [
        *(
            _with_missing(
                _endpoint(method, "/", handler), find_missing(method.name, stored=stored, searchable=searchable)
            )
            for method, handler in at_root
        ),
        _endpoint(_INVENTORY, "/methods", discovery.discover_methods, _ARRAY_OUTPUT),
        *(_endpoint(method, path, discovery.agents) for path, method in discovery.AGENT_METHODS),
        *(_endpoint(one.method, one.path, one.handler) for one in brought if not one.listed),
        *(
            _with_missing(
                replace(_with_participants(_endpoint(method, "/", handler), service), enabled=True),
                find_unjoined(method, service, tables) if stored or method.stateless else REQUIRES_STORE,
                status.UNAVAILABLE if method.needs_table else status.NOT_IMPLEMENTED,
            )
            for method, handler in (*((STANDARD[name], standard[name]) for name in chosen), *own_methods)
        ),
        *(replace(_endpoint(one.method, one.path, one.handler), enabled=True) for one in brought if one.listed),
    ]


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
        passes_on=method.passes_on,
        recorded=method.recorded,
    )


def _output(method: StandardMethod) -> Mapping[str, Any]:
    """Return the schema of the envelope around a result (core 5.3)."""
    if method.returns is None:
        return {"$schema": DIALECT, "type": "object", "additionalProperties": True}
    return {
        "$schema": DIALECT,
        "type": "object",
        "properties": {
            "status": {"type": "integer"},
            "task_id": {"type": "string"},
            "result": object_of(method.returns),
        },
        "required": ["status", "result"],
        "additionalProperties": True,
    }


def _with_participants(endpoint: Endpoint, service: Service) -> Endpoint:
    """Publish what functions of the service add to a method: effects, errors, and names that everybody may use."""
    taken = [({each.method for each in one.functions.values()} or one.methods, one) for one in service.participants]
    joined = [one for methods, one in taken if endpoint.method in methods]
    known = {error.name for error in endpoint.errors}
    errors = {name: text for one in joined for name, text in one.errors.items() if name not in known}
    open_to_all = [one.name for one in joined if not (one.scopes or getattr(one.options, "scopes", ()))]
    named = f" This service has: {', '.join(open_to_all)}." if open_to_all else ""
    added = tuple(DeclaredError(name, text) for name, text in errors.items())
    # Not the hooks of entities: what they do is one transaction with the change, which can be undone.
    acting = [one for part in joined if part.kind != ENTITY for one in part.functions.values()]
    impacts = (one.impact for one in acting if one.method == endpoint.method)
    semantic = replace(endpoint.semantic, impact=max((endpoint.semantic.impact, *impacts), key=IMPACTS.index))
    about = endpoint.description + named
    return replace(endpoint, description=about, semantic=semantic, errors=(*endpoint.errors, *added))


def _with_missing(endpoint: Endpoint, missing: str | None, code: int = status.NOT_IMPLEMENTED) -> Endpoint:
    """Publish honestly that a method is not implemented: every document repeats description, outcome and confidence."""
    if missing is None:
        return endpoint
    return replace(
        endpoint,
        description=f"Not implemented on this server, which lacks {missing}. {endpoint.description}",
        semantic=replace(endpoint.semantic, outcome=f"Nothing is done; {code} names what is missing.", confidence=0.0),
        missing=missing,
    )
