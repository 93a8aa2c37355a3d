"""Functions that take part in standard methods: each becomes a route that no request reaches, only the method."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bespeak.contract.endpoint import DeclaredError, Endpoint, Impact, Semantic
from bespeak.contract.handler import RegisteredFunction
from bespeak.contract.participant import JoinedFunction, Participant
from bespeak.documents.deployment.rules import PARTICIPANT
from bespeak.errors import ContractError
from bespeak.runtime.bindings.function import bind_function
from bespeak.runtime.functions.reading import read_handler
from bespeak.runtime.functions.signature import dotted_name
from bespeak.runtime.route import Route
from bespeak.text.diagnostics.diagnostic import Diagnostic

Compile = Callable[[Endpoint, Callable[..., Any]], Route | None]


@dataclass(frozen=True, slots=True)
class Joined:
    """A participant whose functions can be called: `dispatcher.run_step` takes their routes."""

    participant: Participant
    routes: Mapping[str, Route]  # by what each function is for


def register_participants(
    participants: Iterable[Participant], compile_route: Compile
) -> tuple[dict[str, dict[str, Joined]], list[Diagnostic]]:
    """Bind and compile participants, by kind and name; omit and report those that cannot take part."""
    found: dict[str, dict[str, Joined]] = {}
    findings: list[Diagnostic] = []
    for participant in participants:
        routes: dict[str, Route] = {}
        named = found.setdefault(participant.kind, {})
        fault = f"another {participant.kind} has its name" if participant.name in named else None
        for role, joined in participant.functions.items():
            bound = bind_participant(participant, role, joined)
            route = None if isinstance(bound, str) else compile_route(*bound)
            if route is None:
                fault = fault or (bound if isinstance(bound, str) else "its input schema is not valid")
            else:
                routes[role] = route
        if fault is None:
            named[participant.name] = Joined(participant, routes)
        else:
            message = f"the {participant.kind} {participant.name[:80]!r} cannot be used: {fault}"
            findings.append(PARTICIPANT.found(message, advice="It is left out until this is corrected."))
    return found, findings


def bind_participant(
    participant: Participant, role: str, joined: JoinedFunction
) -> tuple[Endpoint, Callable[..., Any]] | str:
    """Return the endpoint and the call of one function of a participant, or what is wrong with it."""
    return bind_hidden(
        joined.method,
        f"/{participant.kind}/{participant.name}/{role}",
        joined.function,
        description=participant.description,
        impact=joined.impact,
        idempotent=joined.idempotent,
        scopes=participant.scopes,
        errors=participant.errors,
        overrides=participant.overrides,
    )


def bind_hidden(
    method: str,
    path: str,
    function: Callable[..., Any],
    *,
    description: str = "",
    impact: Impact = "irreversible",
    idempotent: bool = False,
    scopes: Iterable[str] = (),
    errors: Mapping[str, str],
    input_schema: Mapping[str, Any] | None = None,
    overrides: Mapping[Any, Callable[..., Any]] | None = None,
) -> tuple[Endpoint, Callable[..., Any]] | str:
    """Describe a function as an endpoint, so that every gate and record of a step applies to it, and bind it.

    Returns what is wrong with the function if it cannot be one.
    """
    try:
        reading = read_handler(function)
    except ContractError as error:
        return str(error)
    prose = reading.prose
    declared = {**prose.errors, **errors}
    undeclared = next((name for name, _ in reading.refused if name not in declared), None)
    if undeclared is not None:
        return f"it refuses with {undeclared!r}, which is not a declared error; add it to `errors`"
    what = description or prose.intent or f"{method} {path}"
    endpoint = Endpoint(
        method=method,
        path=path,
        description=what,
        semantic=Semantic(
            intent=what,
            actor="agent",
            outcome=prose.outcome or "The function has run.",
            capability="",
            confidence=1.0,
            impact=impact,
            is_idempotent=idempotent or impact == "informational",
        ),
        input_schema=reading.input_schema if input_schema is None else input_schema,
        output_schema=reading.output_schema,
        errors=tuple(DeclaredError(name, text) for name, text in declared.items()),
        required_scopes=tuple(dict.fromkeys(scopes)),
        handler=RegisteredFunction(function=dotted_name(function), target=function, overrides=overrides),
        internal=True,
    )
    assert isinstance(endpoint.handler, RegisteredFunction)
    bound = bind_function(endpoint, endpoint.handler)
    return bound.message if isinstance(bound, Diagnostic) else (endpoint, bound)
