"""Responses from answers and refusals."""

from __future__ import annotations

import logging
import secrets
from itertools import count
from typing import Any, Final

import msgspec

from bespeak.contract.handler import Refusal
from bespeak.contract.schema.validation import Violation, refuse_input
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import REQUEST_ID, TASK_ID
from bespeak.protocol.exchange.messages import Connection, Malformed, Response
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Answer, Envelope
from bespeak.runtime.call import Call, RoutedCall, may_discover
from bespeak.runtime.concurrency import OverloadedError
from bespeak.runtime.exchange import Exchange, is_access_logged, log_fault
from bespeak.runtime.functions.signature import ConversionError
from bespeak.runtime.gates import find_deprecation
from bespeak.runtime.route import ENDPOINT_WARNING, Route, catalog_warning
from bespeak.runtime.route_table import RouteTable

_logger = logging.getLogger("bespeak.runtime.dispatcher")  # the name that operators filter by

_encode = msgspec.json.Encoder().encode

_RETRY_AFTER: Final = ("Retry-After", "5")  # by then, strangers that send nothing have lost their places
CANCELLED: Final = Refused(
    status.TIMEOUT, "call-cancelled", "The call was cancelled before it was answered: its client has stopped waiting."
)
_ALWAYS_LOGGED: Final = frozenset({status.TIMEOUT, status.AUTHORITY_CHAIN_BROKEN})  # as warnings (core 6.1)

# AGTP-API 11 and 10.2 put these fields into "the response body", but clients expect them inside `error`: send both.
_MIRRORED: Final = frozenset({status.METHOD_NOT_ALLOWED, status.PROPOSAL_REJECTED})


class Responder:
    def __init__(self) -> None:
        # Unique without a random number per response: 48 bits, counted from a random start.
        self._ids = count(secrets.randbits(47))
        # An access log has the refusals too, and one line is enough.
        self._refusal_level = logging.DEBUG if is_access_logged() else logging.INFO

    def answer(self, call: RoutedCall, result: Answer | Envelope | Refused) -> Response:
        if isinstance(result, Refused):
            return self.refuse(call, result)
        if isinstance(result, Answer):
            block = call.routes.block
            if result.status != status.NOT_MODIFIED:
                block = block.plus(("Content-Type", result.content_type))
            return Response(result.status, result.body, block, self.headers_of(call) + result.headers, result.code)
        body: dict[str, Any] = {"status": result.status}
        task_id = call.request.headers.get(TASK_ID)
        if task_id is not None:
            body["task_id"] = task_id
        body["result"] = result.result
        return Response(result.status, _encode(body), call.route.block, self.headers_of(call) + result.headers)

    def refuse(self, call: Call, refused: Refused) -> Response:
        error = {"code": refused.code, "message": refused.message, **refused.details}
        body: dict[str, Any] = {"status": refused.status, "error": error}
        if refused.status in _MIRRORED:
            body = {**refused.details, **body}
        task_id = call.request.headers.get(TASK_ID)
        if task_id is not None:
            body["task_id"] = task_id
        route = call.route
        block = call.routes.error_block if route is None else route.block
        headers = self.headers_of(call) + refused.headers
        response = Response(refused.status, _encode(body), block, headers, refused.code)
        # Core 6.1: AGTP's own codes are logged; they are normal operation, not errors.
        level = logging.WARNING if refused.status in _ALWAYS_LOGGED else self._refusal_level
        if refused.status in status.LACKING_AUTHORITY and (
            # A claim of more authority than an agent has is refused before it is a caller that a trail could name.
            refused.code == "scope-claim-invalid" or (call.principal.agent_id is not None and not call.server.audited)
        ):
            level = logging.WARNING  # core 10.1: a violation is logged, and no trail has it
        if _logger.isEnabledFor(level):
            exchange = Exchange(call, response)
            args = (refused.status, refused.code, exchange.method, exchange.path, exchange.caller)
            _logger.log(level, "%d %s: %s %s by %s", *args, extra={"particulars": exchange.particulars})
        return response

    def cancelled(self, call: Call) -> Response:
        """Return the answer that a cancelled call is recorded with. It is sent to nobody."""
        refused = CANCELLED
        body = {"status": refused.status, "error": {"code": refused.code, "message": refused.message}}
        route = call.route
        block = call.routes.error_block if route is None else route.block
        return Response(refused.status, _encode(body), block, self.headers_of(call), refused.code)

    def new_id(self) -> str:
        return f"resp-{next(self._ids):012x}"

    def headers_of(self, call: Call) -> tuple[tuple[str, str], ...]:
        """Return the response headers that depend only on the request."""
        request = call.request
        given = request.headers
        composing = call.composing
        # Written out, because a call costs more than the id.
        named = f"resp-{next(self._ids):012x}" if composing is None else composing.response_id
        found: tuple[tuple[str, str], ...] = (("Response-ID", named),)
        if not request.connection.answered:
            found += (call.routes.introduction if may_discover(call) else call.routes.public_introduction,)
        if TASK_ID in given:
            found += (("Task-ID", given[TASK_ID]),)
        if REQUEST_ID in given:
            found += (("Request-ID", given[REQUEST_ID]),)
        if request.semantic is not None:
            found += request.semantic.headers
        route = call.route
        if route is None:
            found += catalog_warning(call.routes.catalog, request.method, route)
            deprecated = find_deprecation(call)
            found += () if deprecated is None else ((ENDPOINT_WARNING, deprecated.warning()),)
        elif route.method != request.method:
            found += catalog_warning(call.routes.catalog, request.method, route)
        return found

    def malformed(self, fault: Malformed, connection: Connection, routes: RouteTable) -> Response:
        body = {"status": fault.status, "error": {"code": fault.code, "message": fault.message}}
        named = ("Response-ID", f"resp-{next(self._ids):012x}")
        headers: tuple[tuple[str, str], ...] = (named,) if connection.answered else (named, routes.public_introduction)
        if fault.status == status.UNAVAILABLE:
            headers += (_RETRY_AFTER,)
        log_fault(fault, connection, headers, logging.WARNING if fault.status in _ALWAYS_LOGGED else logging.INFO)
        return Response(fault.status, _encode(body), routes.error_block, headers, fault.code)


def explain_error(call: RoutedCall, route: Route, error: BaseException) -> Refused | None:
    """Turn a declared error into a refusal; return None for any other exception, which is not disclosed."""
    if isinstance(error, Refusal) and error.name in route.error_descriptions:
        details: dict[str, Any] = {"method": call.method, "path": call.path}
        if error.details:
            details["details"] = msgspec.to_builtins(error.details, str_keys=True, enc_hook=str)
        message = error.message or route.error_descriptions.get(error.name) or error.name
        return Refused(status.UNPROCESSABLE, error.name, message, details)
    if isinstance(error, ConversionError):
        return refuse_input(call.method, call.path, error.violations)
    if isinstance(error, OverloadedError):
        message = "Too many calls wait for a thread of this server; nothing was done. Try again later."
        return Refused(status.UNAVAILABLE, "too-many-calls", message, headers=(("Retry-After", "1"),))
    return None


def broken_output(route: Route, violations: list[Violation]) -> Refused:
    """Refuse to send an output that breaks its contract. The refusal has none of its values."""
    message = f"The handler of {route.endpoint} returned an output that breaks its contract; it is not sent."
    return Refused(status.SERVER_ERROR, "output-validation-failed", message, {"violation_count": len(violations)})
