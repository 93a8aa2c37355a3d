"""Workflow functions for callers: begun by RUN, by an endpoint or by a handler, and told by NOTIFY /workflows."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from bespeak.contract.handler import Refusal
from bespeak.contract.service import Service
from bespeak.contract.standard.definition import ANYTHING, NAME, MethodError, StandardMethod
from bespeak.contract.standard.methods import STANDARD
from bespeak.errors import ContractError
from bespeak.extensions.workflows import methods, states
from bespeak.extensions.workflows.engine import Workflows
from bespeak.extensions.workflows.functions import Run, newest, options_of
from bespeak.extensions.workflows.spec import Spec, outcome_of
from bespeak.extensions.workflows.start import RUNS_PATH, begin, check_input, check_scopes, find_run, read_callback
from bespeak.extensions.workflows.store import SignalRun
from bespeak.protocol import status
from bespeak.protocol.exchange.messages import Context
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Answer, Effects, Envelope
from bespeak.runtime.bindings.participant import METHOD, Joined
from bespeak.runtime.call import JoinedCall, RoutedCall, StepCall
from bespeak.runtime.extension import BuiltIn
from bespeak.runtime.functions.signature import read_hints
from bespeak.runtime.handling import check_needs, effects, refusal, stateful, to_json
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.store import Conflict

SIGNALS: Final = "activation:signal"  # scope with which an agent may signal the runs of others
MOST_SIGNAL: Final = 64 * 1024  # bytes of the value of a signal


@stateful
async def run(call: RoutedCall) -> Envelope | Effects:
    """Answer RUN /: a workflow function, or what the other procedures are."""
    name, workflows = call.input["procedure_id"], call.server.part("workflows")
    joined: Joined | None = workflows.functions.get(name)
    if joined is None:
        if isinstance(call, JoinedCall):
            raise refusal(STANDARD["RUN"], "procedure-not-found", f"The service has no workflow {name[:80]!r}.")
        found: Envelope = await methods.run_procedure(call, name, call.input.get("input", {}))
        return found
    if not isinstance(call, JoinedCall):
        check_scopes(call, "workflow", joined.participant.scopes)
    spec = _spec(call, joined, call.input.get("input", {}), call.input.get("timeout"), await read_callback(call))
    if not isinstance(call, JoinedCall):
        return await begin(call, spec, methods.tell_run)
    planned = await workflows.plan(call, spec)
    if isinstance(planned, Conflict):
        raise refusal(status.RATE_LIMITED, "too-many-workflows", "The agent has too many open workflows.")
    told = {"run_id": planned.record_id, "procedure_id": name, "status": planned.state}
    return effects((planned,), lambda _: told, Refused(status.CONFLICT, "run-exists", "The run exists."))


def _spec(
    call: RoutedCall, joined: Joined, given: dict[str, Any], timeout: float | None = None, callback: str | None = None
) -> Spec:
    """Describe a run of the newest version; refuse an input that it does not take."""
    version, most, name = newest(joined), options_of(joined).timeout, joined.participant.name
    check_input(joined.routes[str(version)].input, given, "workflow")
    authority, deadline = Authority.of(call.principal, call.request), time.time() + min(timeout or most, most)
    named: dict[str, Any] = {"name": name, "workflow": name, "version": version}
    return Spec(METHOD, (), authority, deadline, given=given, **named, callback=callback)


class WorkflowFunction(Protocol):
    """A function that was declared as a workflow. It can be the handler of an endpoint, which begins a run."""

    workflow: str
    """Name of the workflow."""
    function: Callable[..., Any]
    """The function itself, which another workflow may await: `await trip.function(run, ...)`."""

    def version(self, number: int) -> Callable[[Callable[..., Any]], WorkflowFunction]:
        """Declare the decorated function as a later version. Runs go on with the version with which they began."""

    def __call__(self, *given: Any, **named: Any) -> Any: ...


def handler_of(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a handler with the input and output of a workflow: it begins a run and answers with its result."""
    signature, hints = inspect.signature(function), read_hints(function)
    taken = [one for name, one in signature.parameters.items() if hints.get(name) is not Run]
    if len(taken) == len(signature.parameters):
        raise ContractError("it has no parameter `run: Run`, which it needs to await anything")
    first = inspect.Parameter("_context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Context)

    async def handle(_context: Context, *_: Any, **__: Any) -> Any:
        call = _context._call
        assert isinstance(call, RoutedCall), "a handler is called with its call"
        return await _answer(call, name)

    handle.__name__, handle.__qualname__, handle.__doc__ = function.__name__, function.__qualname__, function.__doc__
    handle.__module__ = function.__module__
    handle.__annotations__ = {
        "_context": Context,
        **{one.name: hints[one.name] for one in taken if one.name in hints},
        **({"return": hints["return"]} if "return" in hints else {}),
    }
    handle.__signature__ = inspect.Signature([first, *taken])  # type: ignore[attr-defined]
    handle.__wrapped__ = function  # type: ignore[attr-defined] # where its source is found
    return handle


async def _answer(call: RoutedCall, name: str) -> Any:
    """Begin a run for an endpoint; answer with its result, or with 202 if it does not end in time."""
    check_needs(call)
    workflows: Workflows = call.server.part("workflows")
    made = await begin(call, _spec(call, workflows.functions[name], call.input), methods.tell_run)
    found = await workflows.find(made.result["run_id"])
    while isinstance(call, StepCall) and found is not None and not found.has_ended:
        found = await workflows.wait(found.record.record_id, 3600.0)  # the step has no other answer than the result
    assert found is not None, "a run that has begun is kept"
    state, result, run_id = found.record.state, outcome_of(found), found.record.record_id
    if state == states.COMPLETED:
        return msgspec.json.decode(result["output"])
    if state not in states.ENDED:
        return Answer(msgspec.json.encode(made.result), status.ACCEPTED, headers=made.headers)
    if state == states.CANCELLED:
        raise refusal(status.CONFLICT, "workflow-cancelled", "The run was cancelled.", workflow_id=run_id)
    assert state == states.FAILED
    error = msgspec.json.decode(result["error"])
    code, message = error.pop("code", ""), error.pop("message", "")
    if code in call.route.error_descriptions:
        raise Refusal(code, message, **error)
    number = next(row.code for row in found.rows if row.number == 0)
    if status.BAD_REQUEST <= number < status.SERVER_ERROR:
        raise refusal(number, code, message, workflow_id=run_id)
    message = f"The run has failed with {code}: {message}"
    raise refusal(status.SERVER_ERROR, "workflow-failed", message, workflow_id=run_id)


SIGNAL: Final = StandardMethod(
    name="NOTIFY",
    description="Leaves a signal for a workflow that waits for it, or will.",
    intent="Tell a running workflow that something has happened.",
    outcome="The signal is kept for the workflow, which is woken if it waits.",
    impact="reversible",
    idempotent=False,
    takes={"workflow_id": NAME, "name": NAME, "value?": ANYTHING},
    returns={"workflow_id": NAME, "name": NAME, "status": NAME},
    errors=(
        MethodError("workflow-not-found", status.NOT_FOUND, "The agent has no such workflow."),
        MethodError("workflow-ended", status.CONFLICT, "The workflow has ended, and takes no signals."),
        MethodError("too-many-signals", status.RATE_LIMITED, "The workflow has too many signals."),
        MethodError("value-too-large", status.CONTENT_TOO_LARGE, "The value is too large."),
    ),
    recorded=("workflow_id", "name"),
)


def signal_endpoints(service: Service) -> list[BuiltIn]:
    """Return the endpoint for signals, for a service that has workflow functions."""
    has = any(participant.kind == "workflow" for participant in service.participants)
    own = any(endpoint.key == ("NOTIFY", RUNS_PATH) for endpoint in service.endpoints)
    return [BuiltIn(SIGNAL, RUNS_PATH, signal)] if has and not own else []


@stateful
async def signal(call: RoutedCall) -> Effects:
    """Answer NOTIFY /workflows, of the owner of the run, of an agent with the scope, or of a handler of the service."""
    given, value = call.input, to_json(call.input.get("value"))
    if len(value) > MOST_SIGNAL:
        message = f"The value has {len(value)} bytes; {MOST_SIGNAL} is the maximum."
        raise refusal(SIGNAL, "value-too-large", message, field="/value")
    anybody = isinstance(call, JoinedCall) or not call.principal.scopes.missing((SIGNALS,))
    owner, name = None if anybody else call.agent_id, given["workflow_id"]
    found = None if isinstance(call, JoinedCall) else await find_run(call, name)
    command = SignalRun(found or name, given["name"], value, owner)
    told = {"workflow_id": command.workflow_id, "name": command.name}
    return effects(
        (command,),
        lambda results: {**told, "status": results[0]},
        {
            "not-found": SIGNAL.refuse("workflow-not-found", f"This agent has no workflow {name[:80]!r}."),
            "ended": lambda more: SIGNAL.refuse("workflow-ended", f"The workflow is {more['state']}."),
            "too-many": lambda more: SIGNAL.refuse("too-many-signals", f"It has {more['most']}, the maximum."),
        },
    )
