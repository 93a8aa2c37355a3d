"""PLAN: calls that reach a goal (core 4.5); EXECUTE: an endpoint, a procedure, a plan or a tool call (core 4.7, 9).

PLAN executes nothing. Every gate of an executed endpoint judges the caller, as for a step of a composition. Nothing in
a payload gives authority.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from math import prod
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bespeak.contract.endpoint import IMPACTS, Endpoint
from bespeak.contract.grammar.syntax import fill_path
from bespeak.contract.mcp_tool import Granting, Tool, result_of
from bespeak.contract.schema.validation import Violation, refuse_input
from bespeak.contract.standard.orchestrate import RUNS
from bespeak.extensions.workflows import states
from bespeak.extensions.workflows.engine import Workflow
from bespeak.extensions.workflows.methods import run_procedure
from bespeak.extensions.workflows.spec import Spec, outcome_of, receipt_steps
from bespeak.extensions.workflows.start import LONGEST, begin, check_steps, find_uncallable, place_of, read_steps
from bespeak.protocol import status
from bespeak.protocol.exchange import headers as names
from bespeak.protocol.exchange.headers import IDEMPOTENCY_KEY, MEDIA_AGTP, essence
from bespeak.protocol.exchange.messages import Response
from bespeak.protocol.exchange.refusal import Fault, Outcome, Refused
from bespeak.runtime.answer import Answer, Effects, Envelope
from bespeak.runtime.bindings.participant import METHOD
from bespeak.runtime.call import RoutedCall, StepCall, may_discover, sees, undisclosed
from bespeak.runtime.composition.step import Steps
from bespeak.runtime.concurrency import run_in_thread
from bespeak.runtime.handling import RefusedError, check_needs, finish_step, handler, invalid, passed, refusal
from bespeak.runtime.identity.authority import Authority
from bespeak.runtime.rate import caller
from bespeak.runtime.route import Route
from bespeak.state.store.commands.records import FindRecord, PutRecord, Record, RemoveRecord
from bespeak.state.store.store import Conflict

if TYPE_CHECKING:
    from bespeak.extensions.negotiation.plan import Impossible
    from bespeak.extensions.workflows.goals import Composed, Goal

KIND: Final = "plan"
_KEPT: Final = 86400.0  # seconds for which a plan can be executed by its id
_MOST: Final = 1000  # plans of one agent
_AT_ONCE: Final = 4  # plans that one process makes, one for each caller: handlers that block use the same threads
_LONGEST: Final = 64 * 1024
_planning: Final[set[str]] = set()
_BUSY: Final = Refused(
    status.UNAVAILABLE,
    "planner-busy",
    "A plan of this caller or too many others are being made; try again later.",
    headers=(("Retry-After", "1"),),
)


class StoredPlan(msgspec.Struct, frozen=True):
    steps: tuple[Any, ...]  # of a plan in a request, anything
    given: dict[str, Any]
    result: dict[str, Any]


@handler
async def plan(call: RoutedCall) -> Effects | Envelope:
    """Answer PLAN /: calls of endpoints that the caller may use, or 422 with what came nearest."""
    if not may_discover(call):
        raise RefusedError(undisclosed(call))
    # Planning loads English, which most servers do without.
    from bespeak.extensions.negotiation.plan import Impossible  # noqa: PLC0415
    from bespeak.extensions.workflows.goals import read_goal  # noqa: PLC0415

    goal = read_goal(call.input)
    if not any(endpoint.is_listed and not endpoint.builtin for endpoint in call.routes.endpoints.values()):
        raise _impossible(Impossible(misses=()))
    asking = caller(call.principal, call.request.connection.address)
    if asking in _planning or len(_planning) >= _AT_ONCE:
        raise RefusedError(_BUSY)
    _planning.add(asking)
    try:
        composed = await run_in_thread(_compose, call, goal)
    finally:
        _planning.discard(asking)
    if isinstance(composed, Impossible):
        raise _impossible(composed)
    cost = _cost(composed.endpoints)
    dear = next((unit for unit, most in goal.max_cost.items() if cost.get(unit, Decimal(0)) > most), None)
    if dear is not None:
        message = f"The plan would cost {cost[dear]} {dear}, and at most {goal.max_cost[dear]} is allowed."
        raise refusal(status.UNPROCESSABLE, "no-plan", message, estimated_cost=_written(cost))
    return _tell_plan(call, goal, composed, cost)


def _compose(call: RoutedCall, goal: Goal) -> Composed | Impossible:
    from bespeak.extensions.workflows.goals import composer_of  # noqa: PLC0415

    def usable(endpoint: Endpoint) -> bool:
        route = call.routes.steps.get(endpoint.key)
        return (
            route is not None
            and endpoint.method in call.routes.allowed
            and (not goal.methods or endpoint.method in goal.methods)
            and IMPACTS.index(endpoint.semantic.impact) <= IMPACTS.index(goal.impact)
            and sees(call, route)
            and not call.principal.scopes.missing(endpoint.required_scopes)
        )

    return composer_of(call.routes).compose(goal, usable)


def _tell_plan(call: RoutedCall, goal: Goal, made: Composed, cost: Mapping[str, Decimal]) -> Effects | Envelope:
    steps = [
        {
            "step": number,
            **one,
            "purpose": endpoint.description,
            "impact": endpoint.semantic.impact,
            "required_scopes": list(endpoint.required_scopes),
            "estimated_cost": _written(_cost((endpoint,))),
            "confidence": endpoint.semantic.confidence,
        }
        for number, (one, endpoint) in enumerate(zip(made.calls, made.endpoints, strict=True), 1)
    ]
    sure = prod(endpoint.semantic.confidence for endpoint in made.endpoints) * made.quality
    result: dict[str, Any] = {
        "ordered_steps": steps,
        "estimated_cost": _written(cost),
        "confidence": round(sure, 4),
        "assumptions": [*goal.assumptions, *made.doubts],
        "needs": list(made.needs),
        "result": dict(made.result),
        "impact": max((one.semantic.impact for one in made.endpoints), key=IMPACTS.index),
    }
    stored = msgspec.json.encode(StoredPlan(made.calls, dict(goal.given), dict(made.result)))
    if call.server.store is None or call.agent_id is None or len(stored) > _LONGEST:
        return Envelope(result)
    # The same plan has the same id, so that asking again changes nothing.
    plan_id = "plan-" + hashlib.sha256(call.agent_id.encode() + stored).hexdigest()[:32]
    keep = PutRecord(plan_id, KIND, call.agent_id, "open", stored.decode(), lifetime=_KEPT, most=_MOST)

    def tell(results: Sequence[Any] | Conflict) -> Envelope:
        return Envelope(result if isinstance(results, Conflict) else {"plan_id": plan_id, **result})

    return Effects((RemoveRecord(plan_id), keep), tell)


def _cost(endpoints: Sequence[Endpoint]) -> dict[str, Decimal]:
    total = {"calls": Decimal(len(endpoints))}
    for endpoint in endpoints:
        for unit, amount in (endpoint.cost.amounts if endpoint.cost is not None else {}).items():
            if unit != "calls":
                total[unit] = total.get(unit, Decimal(0)) + amount
    return total


def _written(cost: Mapping[str, Decimal]) -> dict[str, float]:
    return {unit: int(amount) if amount == int(amount) else float(amount) for unit, amount in cost.items()}


def _impossible(impossible: Impossible) -> RefusedError:
    """Say what no endpoint covers. Only endpoints that the caller may use are known to the search."""
    misses = [
        {"field": one.field[:200], "reason": one.reason[:300]} | ({"nearest": str(one.nearest)} if one.nearest else {})
        for one in impossible.misses[:10]
    ]
    message = f"No plan reaches this goal. {misses[0]['reason']}" if misses else "No plan reaches this goal."
    return refusal(status.UNPROCESSABLE, "no-plan", message, misses=misses)


# Members of a step that PLAN adds for its reader.
_TOLD: Final = ("step", "purpose", "impact", "required_scopes", "estimated_cost", "confidence")


async def execute_plan(call: RoutedCall) -> Envelope:
    """Run a plan: one that PLAN has kept for the caller, or one in the request."""
    check_needs(call)
    if call.parent is not None:
        raise invalid("plan", "cannot be a step of another workflow; write its calls as steps.")
    found = await _find(call)
    written = [
        {name: value for name, value in one.items() if name not in _TOLD} if isinstance(one, dict) else one
        for one in found.steps
    ]
    steps = read_steps(written)
    if isinstance(steps, Fault):
        raise invalid("plan", f"has steps that are not valid: {steps.message}")
    uncallable = find_uncallable(call, steps)
    if uncallable is not None:
        raise refusal(status.UNPROCESSABLE, "invalid-plan", uncallable.message, **uncallable.place)
    fault = await check_steps(call, steps, propagates=True, has_input=True, result=dict(found.result))
    if fault is not None:
        raise refusal(status.UNPROCESSABLE, "invalid-plan", fault.message, **place_of(fault))
    authority, deadline = Authority.of(call.principal, call.request), time.time() + call.input.get("timeout", LONGEST)
    given = {**found.given, **call.input.get("parameters", {})}
    more: dict[str, Any] = {"given": given, "name": call.input.get("plan_id"), "result": dict(found.result) or None}
    spec = Spec(call.method, steps, authority, deadline, propagates=True, **more)
    key = call.input.get("idempotency_key")
    if key is not None:
        # A repeated request finds the workflow of the first one by its key.
        call.request = msgspec.structs.replace(call.request, headers={**call.request.headers, IDEMPOTENCY_KEY: key})
    return await begin(call, spec, _tell)


async def _find(call: RoutedCall) -> StoredPlan:
    if "plan" in call.input:
        given = call.input["plan"]
        plan = {"steps": given} if isinstance(given, list) else given
        steps = plan.get("steps", plan.get("ordered_steps"))
        known, result = plan.get("input", {}), plan.get("result", {})
        if not isinstance(steps, list) or not isinstance(known, dict) or not isinstance(result, dict):
            raise invalid("plan", "must have `steps`, a list of calls, and perhaps `input`, an object.")
        return StoredPlan(tuple(steps), known, result)
    record: Record | None = await call.store.read(FindRecord((KIND,), call.input["plan_id"]))
    if record is None or record.owner != call.agent_id:
        message = "This agent has no plan with this id; plans are kept for a day."
        raise refusal(status.NOT_FOUND, "plan-not-found", message)
    return msgspec.json.decode(record.data, type=StoredPlan)


def _tell(workflow: Workflow) -> Envelope:
    steps, state = receipt_steps(workflow), workflow.record.state
    receipt: dict[str, Any] = {"execution_id": workflow.record.record_id, "status": state, "steps": steps}
    return Envelope({**receipt, **outcome_of(workflow)}, status.OK if state in states.ENDED else status.ACCEPTED)


_logger = logging.getLogger(__name__)

MEDIA_MCP_TOOLS: Final = "application/vnd.mcp.tools+json"
MCP_SCOPE: Final = "mcp:tools:execute"  # named by core 9 for tool calls of MCP; those of the endpoint are needed too
CALL: Final = "mcp.tools.call"
LIST: Final = "mcp.tools.list"
_WHAT: Final = ("action", "plan_id", "plan")  # members that say what is to be executed
_PAYLOAD: Final = frozenset({"tool", "name", "arguments", "_meta"})
_CLAIMS: Final[Mapping[str, str]] = {  # members of a payload that say what headers say, and never count
    "agent_id": names.AGENT_ID,
    "authority_scope": names.AUTHORITY_SCOPE,
    "delegation_chain": names.DELEGATION_CHAIN,
    "session_id": names.SESSION_ID,
    "task_id": names.TASK_ID,
}
_GRANTING: Final = Granting(
    lambda scopes: f"over AGTP: Authority-Scope with {', '.join(scopes)}", "over AGTP: Agent-ID and Authority-Scope"
)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class _ToolCall:
    tool: Tool
    route: Route
    arguments: dict[str, Any]
    media_type: str


@handler
async def execute(call: RoutedCall, steps: Steps) -> Answer:
    named = [name for name in _WHAT if name in call.input]
    if len(named) != 1:
        message = f"exactly one of {', '.join(_WHAT)} is required"
        raise RefusedError(refuse_input(call.method, call.path, [Violation("", "", "required", message)]))
    if named != ["action"]:
        return _attribute(call, await execute_plan(call))
    if _is_procedure(call):
        check_needs(call)
        _check_scope(call, RUNS, "RUN")
        return _attribute(call, await run_procedure(call, call.input["action"], call.input.get("parameters", {})))
    media_type = _payload_type(call)
    if media_type is not None and call.input["action"] == LIST:
        return _list(call)
    if media_type is None:
        parameters = dict(call.input.get("parameters", {}))
        wish = _ToolCall(*_executed(call, "action", call.input["action"]), parameters, MEDIA_AGTP)
    else:
        wish = _read_payload(call)
    if call.parent is not None and wish.tool.endpoint.passes_on:
        raise invalid("action", "runs other calls, so it cannot be a step of another workflow.")
    filled = fill_path(wish.tool.endpoint.path, wish.arguments)
    # A value that is missing is refused by the schema.
    path = wish.tool.endpoint.path if isinstance(filled, Fault) else filled[0]
    step, response = await finish_step(steps.run_step(call, wish.route, wish.arguments, path, "1"))
    return _answer(call, wish, step, response, path)


def _is_procedure(call: RoutedCall) -> bool:
    """Return True if the action is a procedure of the operator, which a tool of the same name goes before."""
    action = call.input["action"]
    known = METHOD in call.server.registrar.service.methods and action in call.server.registrar.procedures
    return known and call.parent is None and "payload" not in call.input and _find_executed(call, action) is None


def _attribute(call: RoutedCall, made: Envelope) -> Answer:
    """Wrap the receipt of a workflow (core 5.3)."""
    attribution = {"server_id": call.routes.service.identity.server_id, "agent_id": call.agent_id}
    members = {"result": made.result, "attribution": attribution}
    return Answer(_encode(_envelope(call, made.status, members)), made.status)


def _payload_type(call: RoutedCall) -> str | None:
    """Return the type of the carried payload; None if there is no payload."""
    named = essence(call.input.get("payload_type", ""))
    sent = essence(call.request.headers.get("content-type", ""))
    if sent == MEDIA_MCP_TOOLS and named not in ("", sent):
        message = f"The Content-Type is {sent}, but payload_type is {named[:80]!r}; send one type."
        raise refusal(status.BAD_REQUEST, "payload-type-conflict", message, field="/payload_type")
    found = named or (sent if sent == MEDIA_MCP_TOOLS else "")
    if found not in ("", MEDIA_MCP_TOOLS):
        raise invalid("payload_type", f"is {found[:80]!r}; this server carries {MEDIA_MCP_TOOLS}.")
    if not found and "payload" in call.input:
        raise invalid("payload_type", f"is missing; a payload needs one: {MEDIA_MCP_TOOLS}.")
    return found or None


def _read_payload(call: RoutedCall) -> _ToolCall:
    if call.input["action"] != CALL:
        raise invalid("action", f"is {call.input['action'][:80]!r}; for {MEDIA_MCP_TOOLS} it is {CALL} or {LIST}.")
    payload = call.input.get("payload")
    if not isinstance(payload, dict):
        raise invalid("payload", 'must be an object like {"tool": "book_room", "arguments": {}}.')
    unknown = payload.keys() - _PAYLOAD - _CLAIMS.keys()
    if unknown:
        raise invalid("payload", f"has the unknown member {min(unknown)[:80]!r}; it takes tool and arguments.")
    name, arguments = payload.get("tool", payload.get("name")), payload.get("arguments", {})
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise invalid("payload", "needs a text `tool` and an object `arguments`.")
    for member in payload.keys() & _CLAIMS.keys():
        # What a payload says otherwise than the headers is logged; the headers count (core 9).
        if payload[member] != call.request.headers.get(_CLAIMS[member]):
            _logger.warning("%s in a payload differs from the header, which counts: %s", member, call.route.endpoint)
    _check_scope(call, MCP_SCOPE, CALL)
    return _ToolCall(*_executed(call, "tool", name), arguments, MEDIA_MCP_TOOLS)


def _check_scope(call: RoutedCall, scope: str, what: str) -> None:
    principal = call.principal
    if principal.agent_id is None:
        passed(call.server.principals.credentials_missing(f"{what} requires an agent with the scope {scope}"))
    missing = principal.scopes.missing((scope,))
    if missing:
        message = f"{what} needs the scope {scope}, beside those of what is called."
        declared = list(principal.scopes)
        scopes: dict[str, Any] = {"missing_scopes": missing, "required_scopes": [scope], "declared_scopes": declared}
        raise refusal(status.SCOPE_VIOLATION, "scope-violation", message, **scopes)


def _find_executed(call: RoutedCall, name: str) -> tuple[Tool, Route] | None:
    tool = call.table.tools.get(name)
    route = None if tool is None else call.table.steps.get(tool.endpoint.key)
    if tool is None or route is None or route.method not in call.routes.allowed or not sees(call, route):
        return None
    return tool, route


def _executed(call: RoutedCall, kind: str, name: str) -> tuple[Tool, Route]:
    """Find a tool, or refuse and name those that it may have been meant to be."""
    found = _find_executed(call, name)
    if found is not None:
        return found
    near = get_close_matches(name[:80], call.table.tools, n=3) if may_discover(call) else []
    shown = [one for one in near if _find_executed(call, one) is not None]
    advice = f"Did you mean {', '.join(shown)}?" if shown else f"{LIST} with payload_type {MEDIA_MCP_TOOLS} lists them."
    message = f"There is no {kind} {name[:80]!r}. {advice}"
    details: dict[str, Any] = {kind: name[:80], "suggestions": shown}
    raise refusal(status.NOT_FOUND, f"unknown-{kind}", message, **details)


def _list(call: RoutedCall) -> Answer:
    if not may_discover(call):
        raise RefusedError(undisclosed(call))
    tools = [tool.entry for name, tool in call.table.tools.items() if _find_executed(call, name) is not None]
    return Answer(_encode(_envelope(call, status.OK, {"result": {"tools": tools}})), content_type=MEDIA_MCP_TOOLS)


def _answer(call: RoutedCall, wish: _ToolCall, step: StepCall, response: Response, path: str) -> Answer:
    """Wrap the answer of the endpoint. Its status is that of the answer, so that a refusal looks like one."""
    if status.is_success(response.status):
        deprecated = wish.tool.endpoint.deprecated
        warning = None if deprecated is None else deprecated.warning()
        outcome = Outcome(response.status, step.output, warning=warning)
    else:
        error = _decode(response.body).get("error", {}) if response.body else {}
        outcome = Outcome(response.status, error=error, retry_after=response.header("Retry-After"))
    members: dict[str, Any] = {} if outcome.ok else {"error": outcome.error}
    if wish.media_type == MEDIA_MCP_TOOLS:
        members["result"] = result_of(wish.tool, outcome, _GRANTING)
    elif outcome.ok:
        members["result"] = outcome.output
    members["attribution"] = {
        "server_id": call.routes.service.identity.server_id,
        "agent_id": call.agent_id,
        "method": wish.route.method,
        "path": path,
        "audit_id": response.header("Audit-ID"),
    }
    headers = () if outcome.retry_after is None else (("Retry-After", outcome.retry_after),)
    number = outcome.status
    return Answer(_encode(_envelope(call, number, members)), number, wish.media_type, headers, response.code)


def _envelope(call: RoutedCall, number: int, members: Mapping[str, Any]) -> dict[str, Any]:
    return {"status": number, "task_id": call.request.headers.get(names.TASK_ID), **members}
