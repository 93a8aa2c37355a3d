"""The pipeline of a request: gates, handler, output check, response."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Coroutine
from contextvars import copy_context
from itertools import count
from types import CoroutineType
from typing import Any, Final

import msgspec

from bespeak.contract.refusal import Refusal
from bespeak.contract.schema.numbers import non_finite
from bespeak.contract.schema.report import refuse_input
from bespeak.contract.schema.violation import Violation
from bespeak.errors import StoreError
from bespeak.protocol import status
from bespeak.protocol.exchange.context import Context
from bespeak.protocol.exchange.headers import MEDIA_AGTP, REQUEST_ID, TASK_ID, HeaderBlock
from bespeak.protocol.exchange.messages import Connection, Malformed, Request, Response
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.exchange.token_hints import UNCHANGED, TokenHints
from bespeak.runtime.advisories import catalog_warning
from bespeak.runtime.answer import Answer, Effects, Envelope
from bespeak.runtime.call import Call
from bespeak.runtime.functions.calling import ConversionError
from bespeak.runtime.functions.foreign_types import dump_foreign
from bespeak.runtime.gates import gates_in_force
from bespeak.runtime.particulars import caller_of, particulars, particulars_of_fault
from bespeak.runtime.registry import Registry
from bespeak.runtime.route import Route
from bespeak.runtime.settlement import Settlement
from bespeak.runtime.suspension import Finished, begin

_logger = logging.getLogger(__name__)

_encode = msgspec.json.Encoder().encode

_FAILURES: Final = (Exception, SystemExit, KeyboardInterrupt, asyncio.CancelledError)
"""Whatever a handler raises, the agent gets an answer: `sys.exit` in a library must not be a switch for the server."""

_ALWAYS_LOGGED: Final = frozenset({status.TIMEOUT, status.AUTHORITY_CHAIN_BROKEN})
"""Core 6.1 asks for these by name, so they are told where only warnings are."""

_BUILT_IN: Final = (Refused, Answer, Envelope, Effects)
"""What a handler may return in place of its output."""

# AGTP-API 11 and 10.2 put these fields into "the response body", clients look for them inside `error`: both hold.
_MIRRORED: Final = frozenset({status.METHOD_NOT_ALLOWED, status.PROPOSAL_REJECTED})


class Dispatcher:
    """Answers requests for one registry. It is the `exchange.Handler` every transport and face calls."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._gates = gates_in_force(limited=registry.rates is not None)
        self.settlement: Settlement | None = None
        """What the answers of this server have to do with its store; None where there is none."""
        self._error_block = registry.block.plus(("Content-Type", MEDIA_AGTP))
        self._introduction = ("Supported-Methods", ", ".join(registry.supported_methods))
        # Unique without a random number for each response: 48 bits, counted from a random start.
        self._ids = count(secrets.randbits(47))

    def __call__(
        self, request: Request, *, renewed: bool = False, call: Call | None = None
    ) -> Response | Coroutine[Any, Any, Response]:
        """Answer a request; a coroutine only when the handler or the store is really waited for.

        Who gives a new `call` can read from it afterwards what was found out.
        """
        if call is None:
            call = Call(request, self._registry)
        settlement = self.settlement
        for gate in self._gates:
            refused = gate(call)
            if refused is not None:
                if call.outdated and not renewed:
                    return self._with_new_keys(call)
                response = self.refuse(call, refused)
                if settlement is not None and settlement.records(call, refused):
                    return settlement.record(call, response)
                return response
        if settlement is not None and settlement.concerns(call):
            return settlement.carry_out(call, self._invoke)
        outcome = self._invoke(call)
        if isinstance(outcome, Response):
            return outcome
        return self._complete(call, outcome)

    async def _complete(self, call: Call, outcome: Effects | Coroutine[Any, Any, Response | Effects]) -> Response:
        """Wait for a handler, and for the state it wants changed."""
        settled = outcome if isinstance(outcome, Effects) else await outcome
        if isinstance(settled, Response):
            return settled
        assert self.settlement is not None
        return await self.settlement.commit(call, settled)

    async def _with_new_keys(self, call: Call) -> Response:
        """Fetch the keys that credentials are checked with, and answer the request by what they say."""
        await self._registry.principals.renew_keys()
        again = Call(call.request, self._registry)
        answer = self(call.request, renewed=True, call=again)
        call.principal, call.route = again.principal, again.route
        return answer if isinstance(answer, Response) else await answer

    def _invoke(self, call: Call) -> Response | Effects | Coroutine[Any, Any, Response | Effects]:
        """Call the handler of a call that has passed the gates."""
        route = call.route
        assert route is not None
        context = Context(call.request, call.principal, call.method, call.path, call.input)
        variables = copy_context()
        try:
            result = variables.run(route.call, call.input, context)
            if type(result) is CoroutineType:
                begun = begin(result, variables)
                if not isinstance(begun, Finished):
                    return self._await(call, route, begun)
                result = begun.value
            return self._finish(call, route, result)
        except _FAILURES as error:
            return self._fail(call, route, error)

    async def _await(self, call: Call, route: Route, waiting: Coroutine[Any, Any, Any]) -> Response | Effects:
        try:
            return self._finish(call, route, await waiting)
        except _FAILURES as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # it is this request that is given up, not something the handler waited for
            return self._fail(call, route, error)

    def _fail(self, call: Call, route: Route, error: BaseException) -> Response:
        """Answer for a handler that raised. What it raised may itself be impossible to tell."""
        if isinstance(error, StoreError) and self.settlement is not None:
            return self.settlement.unavailable(call, error)  # of a built-in method that reads
        try:
            refused = _explain(call, route, error)
            if refused is not None:
                return self.refuse(call, refused)
        except Exception as worse:  # noqa: BLE001 - it is reported, and the agent gets an answer whatever it was
            return self._report(call, route, "failed, and what it raised cannot be told", worse)
        if isinstance(error, Refusal):
            return self._report(call, route, f"raised Refusal({error.name!r}), which it does not declare")
        return self._report(call, route, "failed", error)

    def _report(self, call: Call, route: Route, what: str, error: BaseException | None = None) -> Response:
        """A 500 that tells the agent nothing but the id by which the operator finds the reason in the log."""
        message = f"The handler of {route.endpoint} failed; the operator's log has the reason."
        response = self.refuse(call, Refused(status.SERVER_ERROR, "server-error", message))
        told = particulars(call, response.status, response.headers)
        _logger.error("%s %s", route.endpoint, what, exc_info=error, extra={"particulars": told})
        return response

    def answer(self, call: Call, result: Answer | Envelope | Refused) -> Response:
        """The result of a built-in method as a response."""
        if isinstance(result, Refused):
            return self.refuse(call, result)
        if isinstance(result, Answer):
            block = self._registry.block
            if result.status != status.NOT_MODIFIED:
                block = block.plus(("Content-Type", result.content_type))
            return Response(result.status, result.body, block, self.headers_of(call) + result.headers)
        assert call.route is not None
        return Response(result.status, _envelope(call, result), call.route.block, self.headers_of(call))

    def _finish(self, call: Call, route: Route, result: Any) -> Response | Effects:
        if isinstance(result, _BUILT_IN):
            return result if isinstance(result, Effects) else self.answer(call, result)
        output = {} if result is None else msgspec.to_builtins(result, str_keys=True, enc_hook=dump_foreign)
        if not route.output.is_valid(output):
            return self._break(call, route, route.output.violations(output))
        if call.hints is not None:
            return self._shape(call, route, output, call.hints)
        body = _encode(output)
        if b"null" in body and (places := non_finite(output)):
            # JSON has no infinity and no NaN; `null` in their place would be another answer than the handler gave.
            return self._break(call, route, places)
        return Response(status.OK, body, route.block, self.headers_of(call))

    def _shape(self, call: Call, route: Route, output: Any, hints: TokenHints) -> Response:
        """As much of an output as the caller wants. The whole of it is checked: what is left out counts as given."""
        if places := non_finite(output):
            return self._break(call, route, places)
        assert route.shaping is not None
        shaped = route.shaping.apply(hints, output)
        if shaped is not UNCHANGED:
            return Response(status.OK, _encode(shaped), route.block, self.headers_of(call))
        block = HeaderBlock(*(pair for pair in route.block.pairs if pair[0] != "Content-Type"))
        return Response(status.NOT_MODIFIED, b"", block, self.headers_of(call))

    def _break(self, call: Call, route: Route, violations: list[Violation]) -> Response:
        """A 500 for an output that breaks the contract. The log says which part of it; values stay out of both."""
        response = self.refuse(call, _broken_output(route, violations))
        told = particulars(call, response.status, response.headers)
        for violation in violations:
            place = violation.schema_pointer or f"/{violation.keyword}"
            _logger.error(
                "the output of %s breaks its schema at %s", route.endpoint, place, extra={"particulars": told}
            )
        return response

    def refuse(self, call: Call, refused: Refused) -> Response:
        """A refusal as a response."""
        error = {"code": refused.code, "message": refused.message, **refused.details}
        body: dict[str, Any] = {"status": refused.status, "error": error}
        if refused.status in _MIRRORED:
            body = {**refused.details, **body}
        task_id = call.request.headers.get(TASK_ID)
        if task_id is not None:
            body["task_id"] = task_id
        block = self._error_block if call.route is None else call.route.block
        headers = self.headers_of(call) + refused.headers
        # Core 6.1: AGTP's own codes are logged; they are normal operation, no fault.
        level = logging.WARNING if refused.status in _ALWAYS_LOGGED else logging.INFO
        if _logger.isEnabledFor(level):
            told = particulars(call, refused.status, headers)
            message = "%d %s: %s %s by %s"
            args = (refused.status, refused.code, told["method"], told["path"], caller_of(told))
            _logger.log(level, message, *args, extra={"particulars": told})
        return Response(refused.status, _encode(body), block, headers)

    def headers_of(self, call: Call) -> tuple[tuple[str, str], ...]:
        """The headers that belong to the request at hand, whatever the answer."""
        request = call.request
        given = request.headers
        found = self._opening(request.connection)
        if TASK_ID in given:
            found += (("Task-ID", given[TASK_ID]),)
        if REQUEST_ID in given:
            found += (("Request-ID", given[REQUEST_ID]),)
        if call.route is None or call.route.endpoint.method != request.method:
            found += catalog_warning(self._registry.catalog, call)
        return found

    def malformed(self, fault: Malformed, connection: Connection) -> Response:
        """Answer bytes that were no request."""
        body = {"status": fault.status, "error": {"code": fault.code, "message": fault.message}}
        headers = self._opening(connection)
        level = logging.WARNING if fault.status in _ALWAYS_LOGGED else logging.INFO
        if _logger.isEnabledFor(level):
            told = particulars_of_fault(connection, fault.status, headers)
            _logger.log(level, "%d %s: no request", fault.status, fault.code, extra={"particulars": told})
        return Response(fault.status, _encode(body), self._error_block, headers)

    def _opening(self, connection: Connection) -> tuple[tuple[str, str], ...]:
        """The headers of every response, and on the first of a connection what this server is able to do."""
        named = ("Response-ID", f"resp-{next(self._ids):012x}")
        return (named,) if connection.answered else (named, self._introduction)


def _explain(call: Call, route: Route, error: BaseException) -> Refused | None:
    """What the agent learns of an exception: a declared error by its name, anything else by nothing."""
    if isinstance(error, Refusal) and error.name in route.error_descriptions:
        details: dict[str, Any] = {"method": call.method, "path": call.path}
        if error.details:
            details["details"] = msgspec.to_builtins(error.details, str_keys=True, enc_hook=str)
        message = error.message or route.error_descriptions.get(error.name) or error.name
        return Refused(status.UNPROCESSABLE, error.name, message, details)
    if isinstance(error, ConversionError):
        return refuse_input(call.method, call.path, error.violations)
    return None


def _envelope(call: Call, envelope: Envelope) -> bytes:
    body: dict[str, Any] = {"status": envelope.status}
    task_id = call.request.headers.get(TASK_ID)
    if task_id is not None:
        body["task_id"] = task_id
    body["result"] = envelope.result
    return _encode(body)


def _broken_output(route: Route, violations: list[Violation]) -> Refused:
    return Refused(
        status.SERVER_ERROR,
        "output-validation-failed",
        f"The handler of {route.endpoint} returned something its contract does not allow; nothing of it is shown.",
        {"violation_count": len(violations)},
    )
