"""ROUTE: chooses a handler for a work item, and hands the item over (Tier 2 8.4)."""

from __future__ import annotations

import time
from collections.abc import Coroutine
from typing import Any, Final

import msgspec

from bespeak.contract.standard.definition import NOT_LISTED
from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.messages.message import (
    KEPT,
    MOST_CONTENT,
    MOST_FROM_ONE,
    MOST_RECEIVED,
    Message,
    address_messages,
)
from bespeak.extensions.messages.recipients import is_unlisted
from bespeak.extensions.messages.store import PutMessages
from bespeak.extensions.monitors import routing
from bespeak.protocol import status
from bespeak.protocol.exchange.messages import Response
from bespeak.protocol.exchange.refusal import Fault
from bespeak.protocol.wire.messages import ResponseMessage
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.composition.step import Steps
from bespeak.runtime.handling import check_content, check_size, effects, new_id, refusal, stateful

NOTICE: Final = "routed"  # kind of the messages by which agents receive items
_ROUTE: Final = STANDARD["ROUTE"]
_UNREACHED: Final = frozenset({status.UNAVAILABLE, status.RATE_LIMITED})  # the handler has not taken the item
_MOST_TOLD: Final = 10  # candidates whose faults a refusal tells
_NOT_CONNECTED: Final = "upstream_connection_error"


@stateful
async def route(call: RoutedCall, steps: Steps) -> Effects | Envelope:
    """Answer ROUTE /. The item goes to the best handler that can be reached, else to the fallback."""
    criteria = await routing.read_criteria(call)
    if isinstance(criteria, str):
        raise refusal(_ROUTE, "invalid-criteria", f"`criteria` {criteria}.", field="/criteria")
    candidates = _read_candidates(call)
    fallback = _read_fallback(call)
    found = [(candidate.name, routing.find_handler(call, candidate)) for candidate in candidates]
    ranked = await routing.rank(call, criteria, [one for _, one in found if isinstance(one, routing.RouteHandler)])
    if isinstance(ranked, Fault):
        raise refusal(_ROUTE, "invalid-criteria", f"`criteria` cannot be used: {ranked.message}.", field="/criteria")
    unreached = 0
    for one in ranked:
        outcome = await _hand_over(call, steps, one.handler, _explain(criteria, one, len(ranked), unreached), one.score)
        if outcome is not None:
            return outcome
        unreached += 1
    if fallback is not None:
        reason = f"The fallback: none of {len(candidates)} candidates fits." if not ranked else ""
        reason = reason or f"The fallback: {unreached} of the candidates fit, but none of them could be reached."
        outcome = await _hand_over(call, steps, fallback, reason, None)
        if outcome is not None:
            return outcome
    if ranked or fallback is not None:
        raise refusal(_ROUTE, "handler-unavailable", "No handler that fits could be reached; try again later.")
    unfit = "it does not meet the criteria"
    reasons = [
        {"candidate": name, "reason": one if isinstance(one, str) else unfit} for name, one in found[:_MOST_TOLD]
    ]
    message = f"None of {len(candidates)} candidates fits, and there is no fallback."
    raise refusal(_ROUTE, "no-handler", message, candidates=reasons)


def _read_candidates(call: RoutedCall) -> list[routing.RouteCandidate]:
    written = call.input.get("candidates")
    if written is None:
        return routing.list_endpoints(call)
    check_size("candidates", routing.size_of(written), routing.MOST_CANDIDATES)
    return [_read(call, one, f"/candidates/{position}", position) for position, one in enumerate(written)]


def _read_fallback(call: RoutedCall) -> routing.RouteHandler | None:
    if "fallback" not in call.input:
        return None
    found = routing.find_handler(call, _read(call, call.input["fallback"], "/fallback"))
    if isinstance(found, routing.RouteHandler):
        return found
    raise refusal(_ROUTE, "invalid-candidate", f"The fallback cannot take the item: {found}.", field="/fallback")


def _read(call: RoutedCall, written: Any, field: str, *position: int) -> routing.RouteCandidate:
    """Refuse what is not written as a candidate, passes items on itself, or is a service that is not allowed."""
    candidate = routing.parse_candidate(written, *position)
    if isinstance(candidate, str):
        raise refusal(_ROUTE, "invalid-candidate", f"The candidate {candidate}.", field=field)
    if routing.is_recursive(call, candidate):
        message = f"{candidate.name[:80]} passes items on itself, so it cannot be a handler."
        raise refusal(_ROUTE, "invalid-candidate", message, field=field)
    if not routing.is_allowed(call, candidate):
        message = "The service is not one that the operator lists as a recipient."
        error = NOT_LISTED.name if is_unlisted(candidate.address, call.server) else "invalid-candidate"
        raise refusal(_ROUTE, error, message, field=field)
    return candidate


def _explain(criteria: routing.Criteria, one: routing.Ranked, fitting: int, unreached: int) -> str:
    measured = "" if one.latency is None else f", median {one.latency * 1000:.1f} ms"
    how = "by the expression" if criteria.expression is not None else f"by {criteria.prefer}"
    skipped = f" {unreached} better ones could not be reached." if unreached else ""
    return f"Best of {fitting} that fit, {how}: {one.running} calls run{measured}.{skipped}"


async def _hand_over(
    call: RoutedCall, steps: Steps, handler: routing.RouteHandler, reason: str, score: float | None
) -> Effects | Envelope | None:
    """Give the item to a handler; return None if it could not be reached, so that nothing has happened."""
    decision: dict[str, Any] = {"handler": handler.candidate.name, "reason": reason}
    if score is not None:
        decision["score"] = round(score, 6)
    if handler.candidate.kind == routing.AGENT:
        return _send(call, handler.candidate.name, decision)
    if handler.candidate.kind == routing.SERVICE:
        return await _call_service(call, handler, decision)
    return await _call_endpoint(call, steps, handler, decision)


def _send(call: RoutedCall, agent_id: str, decision: dict[str, Any]) -> Effects:
    """Put the item into the inbox of an agent, in the transaction of the answer."""
    check_content(call.input, "payload", MOST_CONTENT)
    message = Message(sender=call.agent_id or "", kind=NOTICE, content=call.input["payload"])
    messages = address_messages(new_id("ntf"), message, (agent_id,), kept_until=time.time() + KEPT)
    return effects(
        [PutMessages(messages, most=MOST_RECEIVED, share=MOST_FROM_ONE)],
        lambda _: {**decision, "delivered": True, "message_id": messages[0].record_id},
        _ROUTE.refuse("handler-unavailable", "The agent has no room for more messages.", handler=agent_id),
    )


async def _call_endpoint(
    call: RoutedCall, steps: Steps, handler: routing.RouteHandler, decision: dict[str, Any]
) -> Envelope | None:
    """Call an endpoint here. Every gate of it judges the caller."""
    route, candidate = handler.route, handler.candidate
    assert route is not None
    assert handler.given is not None
    statistics, began = call.server.part("statistics"), time.perf_counter()
    with statistics.running(handler.key):
        called = steps.run_step(call, route, dict(handler.given), candidate.path, "1")
        done = await called if isinstance(called, Coroutine) else called
    response: Response | None = done.response
    assert response is not None, "the step has run"
    statistics.note(handler.key, time.perf_counter() - began, response.status)
    if status.is_success(response.status):
        return Envelope({**decision, "delivered": True, "code": response.status, "output": done.output})
    if response.status in _UNREACHED or response.code == _NOT_CONNECTED:
        return None
    return Envelope({**decision, "delivered": False, "code": response.status, "error": _error(response.body)})


async def _call_service(call: RoutedCall, handler: routing.RouteHandler, decision: dict[str, Any]) -> Envelope | None:
    """Call an endpoint of another service, within the guard of delivery."""
    body = msgspec.json.encode(call.input["payload"])
    candidate, key, began = handler.candidate, handler.key, time.perf_counter()
    task_id = new_id("route")
    with call.server.part("statistics").running(key):
        answer = await call.server.part("delivery").call(
            candidate.address, candidate.method, candidate.path, task_id, body
        )
    if not isinstance(answer, ResponseMessage):
        if getattr(answer, "sent", False):
            message = f"{answer.message} Whether the handler has taken the item is not known."
            raise refusal(_ROUTE, "handler-unavailable", message, handler=candidate.name)
        return None
    call.server.part("statistics").note(key, time.perf_counter() - began, answer.status)
    if answer.status in _UNREACHED:
        return None
    if not status.is_success(answer.status):
        return Envelope({**decision, "delivered": False, "code": answer.status, "error": _error(answer.body)})
    return Envelope({**decision, "delivered": True, "code": answer.status, "output": _decode(answer.body)})


def _error(body: bytes) -> dict[str, Any]:
    found = _decode(body)
    error = found.get("error") if isinstance(found, dict) else None
    return error if isinstance(error, dict) else {}


def _decode(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body) if body else None
    except (ValueError, RecursionError):
        return None
