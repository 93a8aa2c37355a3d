"""Functions that take part in standard methods, and procedures: routes that no request reaches, only the methods.

They run in the authority of whoever calls the method, through every gate of a step. A procedure of the operator is a
function or a chain of steps that RUN may run (Tier 2 10.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bespeak.contract.endpoint import DeclaredError, Endpoint, Impact, Semantic
from bespeak.contract.handler import RegisteredFunction
from bespeak.contract.participant import SOURCE, JoinedFunction, Participant
from bespeak.contract.procedure import Procedure, find_wrong_step
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.contract.standard.definition import MethodError
from bespeak.contract.standard.methods import STANDARD
from bespeak.contract.standard.orchestrate import RUNS
from bespeak.documents.rules import PROCEDURE
from bespeak.errors import ContractError
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.bindings.function import bind_function, resolve_function
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


def register_participants(participants: Iterable[Participant], compile_route: Compile) -> dict[str, dict[str, Joined]]:
    """Bind and compile participants, by kind and name. Raises ContractError for one that cannot take part."""
    found: dict[str, dict[str, Joined]] = {}
    for participant in participants:
        routes: dict[str, Route] = {}
        named = found.setdefault(participant.kind, {})
        fault = f"another {participant.kind} has its name" if participant.name in named else None
        for role, joined in participant.functions.items():
            bound = fault or bind_participant(participant, role, joined)
            route = None if isinstance(bound, str) else compile_route(*bound)
            if route is None:
                reason = bound if isinstance(bound, str) else "its input schema is not valid"
                raise ContractError(f"the {participant.kind} {participant.name[:80]!r} cannot be used: {reason}")
            routes[role] = route
        named[participant.name] = Joined(participant, routes)
    return found


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
        # A function may refuse as the method does; `handling.run_function` gives its refusal the status of the method.
        errors={**{error.name: error.description for error in method_errors(joined)}, **participant.errors},
        overrides=participant.overrides,
        streams=role == SOURCE,
    )


def method_errors(joined: JoinedFunction) -> tuple[MethodError, ...]:
    """Return the errors of the standard method that a function takes part in."""
    return STANDARD[joined.method].errors if joined.method in STANDARD else ()


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
    streams: bool = False,
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
        streams=streams,
    )
    assert isinstance(endpoint.handler, RegisteredFunction)
    bound = bind_function(endpoint, endpoint.handler)
    return bound.message if isinstance(bound, Diagnostic) else (endpoint, bound)


METHOD: Final = "RUN"


@dataclass(frozen=True, slots=True)
class Registered:
    procedure: Procedure
    input: Validator
    route: Route | None  # route of its function; None if it has steps


def path_of(procedure_id: str) -> str:
    """Return the path of the route of a procedure, which no request reaches."""
    return f"/procedures/{procedure_id}"


def register_procedures(
    procedures: Iterable[Procedure], compile_route: Compile
) -> tuple[Mapping[str, Registered], list[Diagnostic]]:
    """Bind and compile procedures; omit and report those that cannot be run."""
    found: dict[str, Registered] = {}
    findings: list[Diagnostic] = []
    for procedure in procedures:
        made = _register(procedure, compile_route)
        if isinstance(made, Registered) and procedure.procedure_id not in found:
            found[procedure.procedure_id] = made
            continue
        fault = "another procedure has its id" if isinstance(made, Registered) else made
        message = f"the procedure {procedure.procedure_id[:80]!r} cannot be run: {fault}"
        findings.append(PROCEDURE.found(message, advice="RUN answers 404 for it until this is corrected."))
    return found, findings


def _register(procedure: Procedure, compile_route: Compile) -> Registered | str:
    if procedure.steps:
        wrong = find_wrong_step(list(procedure.steps))
        fault = "; ".join(procedure.faults()) or (f"its steps are not valid: {wrong.message}" if wrong else "")
        taken = compile_schema(procedure.input_schema or {"type": "object"})
        if isinstance(taken, Fault):
            fault = fault or f"its input schema is not valid: {taken.message}"
        return fault or Registered(procedure, taken, None)  # type: ignore[arg-type] # a Fault has a message
    bound = bind_procedure(procedure)
    if isinstance(bound, str):
        return bound
    route = compile_route(*bound)
    return "its input schema is not valid" if route is None else Registered(procedure, route.input, route)


def bind_procedure(procedure: Procedure) -> tuple[Endpoint, Callable[..., Any]] | str:
    """Return the endpoint and the call of a procedure that is a function, or what is wrong with it."""
    faults = procedure.faults()
    if faults:
        return "; ".join(faults)
    function = procedure.target or resolve_function(procedure.function.replace(":", "."))
    if isinstance(function, str):
        return function
    return bind_hidden(
        METHOD,
        path_of(procedure.procedure_id),
        function,
        description=procedure.description,
        idempotent=procedure.idempotent,
        scopes=(RUNS, *procedure.scopes),
        errors=dict.fromkeys(procedure.errors, ""),
        input_schema=procedure.input_schema,
        overrides=procedure.overrides,
    )
