"""The calls that a composite of this server would make: every one of them, before a person decides about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bespeak.contract.confirmation import UNKNOWN, ListedCall, bounded, list_candidates, list_steps, list_written
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.standard.orchestrate import LISTS
from bespeak.extensions.workflows.methods import is_workflow_id
from bespeak.extensions.workflows.procedures import find_own_procedure
from bespeak.extensions.workflows.spec import StepSpec, find_step
from bespeak.protocol.exchange.refusal import Fault, Refused
from bespeak.runtime.bindings.composition import composed_calls, list_composition
from bespeak.runtime.bindings.participant import Registered
from bespeak.runtime.call import Call


async def list_calls(call: Call, endpoint: Endpoint, arguments: Mapping[str, Any]) -> tuple[ListedCall, ...] | Fault:
    """List what a call of an endpoint would call for the caller of `call`; a Fault says why that is not known."""
    if not endpoint.passes_on:
        return list_composition(call.routes, endpoint.key)

    def reach(method: str, path: str) -> tuple[str, tuple[ListedCall, ...]]:
        found = find_step(call, method, path)
        if isinstance(found, Refused):
            return UNKNOWN, ()
        return found.route.endpoint.semantic.impact, tuple(composed_calls(call.routes, found.route))

    match endpoint.method:
        case "CHAIN" | "BATCH":
            return list_written(arguments[LISTS[endpoint.method]], reach)
        case "ROUTE":
            return bounded(list_candidates(arguments, call.routes.endpoints.values(), reach))
        case "RUN":
            known: Registered | None = call.server.registrar.procedures.get(arguments["procedure_id"])
            if known is not None and known.route is not None:
                done = known.route.endpoint
                return (ListedCall(*done.key, done.semantic.impact, arguments.get("input")),)
            steps: Sequence[Any] | Fault = await _procedure(call, known, arguments["procedure_id"])
        case "RETRY":
            steps = await _repeated(call, arguments["original_task_id"])
        case _:
            steps = Fault(f"{endpoint} does not tell what it calls")
    return steps if isinstance(steps, Fault) else bounded(list_steps(steps, reach))


async def _procedure(call: Call, known: Registered | None, procedure_id: str) -> Sequence[Any] | Fault:
    """Return the steps of a procedure of the operator, or of one of the caller's own."""
    if known is not None:
        return list(known.procedure.steps)
    found = await find_own_procedure(call, procedure_id)
    if found is None:
        return Fault(f"no procedure is registered under {procedure_id[:80]!r}")
    return _plain(found[1].steps)


async def _repeated(call: Call, task_id: str) -> list[Any] | Fault:
    server, agent_id = call.server, call.agent_id or ""
    if is_workflow_id(task_id):
        workflow = None if server.part("workflows") is None else await server.part("workflows").find(task_id, agent_id)
        if workflow is not None:
            return _plain(workflow.spec.steps)
    else:
        found = None if server.part("retries") is None else await server.part("retries").find(agent_id, task_id)
        if found is not None:
            kept = found[1]
            return [{"method": kept.method, "path": kept.path, "parameters": _body(kept.body)}]
    return Fault(f"this agent has no call with the Task-ID {task_id[:80]!r} that can be repeated")


def _plain(steps: Sequence[StepSpec]) -> list[Any]:
    """Return steps as they were sent."""
    return [msgspec.to_builtins(step) for step in steps]


def _body(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body) if body else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
