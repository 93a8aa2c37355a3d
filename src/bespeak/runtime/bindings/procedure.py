"""The procedures of an operator: each becomes a route that only workflows call, or a chain of steps (Tier 2 10.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.procedure import Procedure
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.contract.standard.definition import list_of
from bespeak.contract.standard.orchestrate import RUNS, STEP
from bespeak.documents.deployment.rules import PROCEDURE
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.bindings.function import resolve_function
from bespeak.runtime.bindings.participant import bind_hidden
from bespeak.runtime.route import Route
from bespeak.text.diagnostics.diagnostic import Diagnostic

METHOD: Final = "RUN"
STEPS: Final = list_of(STEP, least=1, most=100)  # schema of the steps of a procedure


@dataclass(frozen=True, slots=True)
class Registered:
    procedure: Procedure
    input: Validator
    route: Route | None  # route of its function; None if it has steps


def path_of(procedure_id: str) -> str:
    """Return the path of the route of a procedure, which no request reaches."""
    return f"/procedures/{procedure_id}"


def register_procedures(
    procedures: Iterable[Procedure], compile_route: Callable[[Endpoint, Callable[..., Any]], Route | None]
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


def _register(
    procedure: Procedure, compile_route: Callable[[Endpoint, Callable[..., Any]], Route | None]
) -> Registered | str:
    if procedure.steps:
        fault = "; ".join(procedure.faults()) or _steps_fault(procedure)
        taken = compile_schema(procedure.input_schema or {"type": "object"})
        if isinstance(taken, Fault):
            fault = fault or f"its input schema is not valid: {taken.message}"
        return fault or Registered(procedure, taken, None)  # type: ignore[arg-type] # a Fault has a message
    bound = bind_procedure(procedure)
    if isinstance(bound, str):
        return bound
    route = compile_route(*bound)
    return "its input schema is not valid" if route is None else Registered(procedure, route.input, route)


def _steps_fault(procedure: Procedure) -> str:
    steps = compile_schema(STEPS)
    assert isinstance(steps, Validator)
    wrong = steps.violations(list(procedure.steps))
    return f"its steps are not valid: {wrong[0].message}" if wrong else ""


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
