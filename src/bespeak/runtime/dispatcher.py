"""The pipeline of a request: gates, handler, output check, response."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from functools import partial
from time import perf_counter
from types import CoroutineType
from typing import Any, Final

import msgspec

from bespeak.contract.handler import Refusal, RegisteredFunction
from bespeak.contract.schema.validation import Violation, non_finite
from bespeak.errors import StoreError
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import BUDGET_LIMIT, IDEMPOTENCY_KEY, METHOD_GRAMMAR, HeaderBlock
from bespeak.protocol.exchange.messages import PATIENCE, Connection, Context, Malformed, Request, Response
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.exchange.token_hints import UNCHANGED, TokenHints
from bespeak.runtime.answer import Answer, Effects, Envelope
from bespeak.runtime.bindings.stream import ItemStream
from bespeak.runtime.call import Call, Composing, DirectCall, Journal, RoutedCall, StepCall, refuse_stranger, sees
from bespeak.runtime.composition.step import APART, JOURNALED, UNDOES, UNLIMITED
from bespeak.runtime.concurrency import HELD, Finished, WaitingCoroutine, begin, is_in_task, resume, take_outliving
from bespeak.runtime.concurrency import call_eagerly as run_call
from bespeak.runtime.exchange import Exchange, Subscriber
from bespeak.runtime.extension import FOLLOW
from bespeak.runtime.functions.annotations import dump_foreign
from bespeak.runtime.functions.output_filter import UnfitResult
from bespeak.runtime.gates import find_route, plan_gates
from bespeak.runtime.gates.authority import freshness_gate
from bespeak.runtime.handling import RefusedError
from bespeak.runtime.responder import Responder, broken_output, explain_error
from bespeak.runtime.route import Route
from bespeak.runtime.server import Server
from bespeak.runtime.settlement import Keeping, Settlement, TaskAdmission
from bespeak.state.store.store import level_of

Answering = Response | Coroutine[Any, Any, Response]  # an answer, or what has to be awaited for it
Outcome = Response | Effects | Coroutine[Any, Any, Response | Effects]  # the same of a handler
_logger = logging.getLogger(__name__)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

_FAILURES: Final = (Exception, SystemExit, KeyboardInterrupt, asyncio.CancelledError)  # `sys.exit` must not stop us

# Types of results other than an endpoint's output.
_BUILT_IN: Final = frozenset({Refused, Answer, Envelope, Effects, ItemStream})
_DONE: Final = Response(status.OK)  # answer of a step whose output goes to the composition as it is
_MARKS: Final = JOURNALED | APART | UNDOES  # flags that a step keeps
_MOST_PLACES: Final = 5  # places of a broken output that the log names

_ZONELESS: Final = "; a datetime needs a time zone: return datetime.now(UTC), not datetime.now() ({}: {})"


class Dispatcher:
    """Answers the requests of one server. It is the `exchange.Handler` that every transport and face calls."""

    def __init__(
        self,
        server: Server,
        responder: Responder | None = None,
        settlement: Settlement | None = None,
        subscribers: tuple[Subscriber, ...] = (),
    ) -> None:
        """Create the dispatcher of a server; `settlement` connects answers with its store, and is None without one."""
        self.server = server
        self._responder = responder or Responder()
        self.new_id = self._responder.new_id  # of a call whose steps must name its Response-ID before it is answered
        self.refuse = self._responder.refuse  # builds the answer of a refusal that is not sent but noted
        self._settlement = settlement
        self._subscribers = subscribers
        self._arrival, self._routed, self._steps = plan_gates(server)
        self._holding: set[tuple[str, str]] = set()  # endpoints whose handlers were reported for holding the loop
        server.agents.watch_age(self._judge_age)
        server.dispatcher = self

    def subscribe(self, subscriber: Subscriber) -> None:
        self._subscribers = (*self._subscribers, subscriber)

    def unsubscribe(self, subscriber: Subscriber) -> None:
        self._subscribers = tuple(one for one in self._subscribers if one != subscriber)

    def keep_calls(self, keeping: Keeping) -> None:
        """Keep calls that may be repeated later. There must be a store."""
        assert self._settlement is not None, "calls are kept in a store"
        self._settlement.keeping = keeping

    def admit_tasks(self, wrap: Callable[[TaskAdmission], TaskAdmission]) -> None:
        """Put another check around the one for the task of a call, where there is a store."""
        if self._settlement is not None and self._settlement.pausing is not None:
            self._settlement.pausing = wrap(self._settlement.pausing)

    def _judge_age(self, stale: bool) -> None:
        """Add the gate for a copy of the agents that is too old, or remove it: at other times it costs nothing."""
        arrival = tuple(gate for gate in self._arrival if gate is not freshness_gate)
        routed = tuple(gate for gate in self._routed if gate is not freshness_gate)
        # Second, because a caller that is known to be refused is told why; first, because calls of workflows and
        # repetitions arrive there, and nothing of the endpoint is disclosed.
        self._arrival = (*arrival, freshness_gate) if stale else arrival
        self._routed = (freshness_gate, *routed) if stale else routed

    @property
    def keeps_state(self) -> bool:
        """True if answers are stored under idempotency keys and audited."""
        return self._settlement is not None

    async def finish(self) -> None:
        """Wait until calls that were cancelled are recorded."""
        if self._settlement is not None:
            await self._settlement.finish()

    async def start(self) -> None:
        await self.server.start()
        if self._settlement is not None:
            await self._settlement.start()

    def __call__(self, request: Request, *, renewed: bool = False) -> Answering:
        """Answer a request, at once if possible. `renewed`: the keys that verify credentials have just been fetched."""
        started = perf_counter() if self._subscribers else 0.0
        routes = self.server.routes
        methods = routes.direct.get(request.path)
        route = None if methods is None else methods.get(request.method)
        call: Call
        if (
            route is not None
            and request.prepared is None
            and not route.is_hidden
            and METHOD_GRAMMAR not in request.headers
            and (not request.reads or route.is_readable)
        ):
            call = DirectCall(request, self.server, routes, route)
        else:
            call = Call(request, self.server)
        for gate in self._arrival:
            refused = gate(call)
            if refused is not None:
                if not isinstance(refused, Refused):
                    if not renewed:
                        return self._with_new_keys(request)
                    refused = refused.refused
                return self._refuse(call.unrouted() if isinstance(call, DirectCall) else call, refused, started)
        if isinstance(call, DirectCall):
            return self._proceed(call, started)
        if request.prepared is not None:
            # The request calls no endpoint: answer as the face has prepared, if the caller may discover.
            if (refusal := refuse_stranger(call)) is not None:
                return self._refuse(call, refusal, started)
            return request.prepared if not self._subscribers else self._emit(call, request.prepared, started)
        return self._find(call, route, started)

    def _find(self, call: Call, route: Route | None, started: float) -> Answering:
        """Find the endpoint of a call that does not simply name one, and answer it."""
        request = call.request
        if (
            route is not None
            and METHOD_GRAMMAR not in request.headers
            and (not request.reads or route.is_readable)
            and (not route.is_hidden or sees(call, route))
        ):
            return self._proceed(RoutedCall(call, route), started)
        own = self.server.own_endpoints
        found: RoutedCall | Refused | None = None if own is None else own.find_own(call)
        if found is None:
            found = find_route(call)
        if isinstance(found, Refused):
            if own is not None and own.may_know_more(call, found):
                return self._with_new_syntheses(call, found, started)
            return self._refuse(call, found, started)
        return self._proceed(found, started)

    def _proceed(self, routed: RoutedCall, started: float) -> Answering:
        for judge in self._routed:
            refusal = judge(routed)
            if refusal is not None:
                return self._refuse(routed, refusal, started)
        settlement = self._settlement
        answer: Answering
        if settlement is not None and settlement.concerns(routed):
            answer = settlement.carry_out(routed, self._invoke)
        else:
            outcome = self._invoke(routed)
            ends_here = isinstance(outcome, Response) and routed.joined is None
            answer = outcome if ends_here else self._complete(routed, outcome)  # type: ignore[assignment] # a Response
            if isinstance(answer, Response) and answer.code is not None:
                answer = self._record(routed, answer)
        if not isinstance(answer, Response) and routed.route.builtin and PATIENCE.get() is not None:
            answer = self._follow(routed, answer)
        return answer if not self._subscribers else self._emit(routed, answer, started)

    async def _follow(self, call: RoutedCall, answering: Coroutine[Any, Any, Response]) -> Response:
        """Answer with the end of a job that a call has begun, for a caller who waits for it and hears of progress."""
        answer = await answering
        begun = _decode(answer.body).get("result", {}) if answer.status == status.ACCEPTED else {}
        if "job_id" not in begun:
            return answer
        ended: Envelope | Refused | None = await self.server.hooks[FOLLOW](call, begun["job_id"])
        if ended is None:
            return answer
        made = self._responder.answer(call, ended)
        return Response(made.status, made.body, made.block, answer.headers, made.code)

    def repeat(self, call: Call) -> Answering:
        """Answer a call again whose caller was verified when it arrived; every gate of its endpoint judges it."""
        started = perf_counter() if self._subscribers else 0.0
        own = self.server.own_endpoints
        found: RoutedCall | Refused = (None if own is None else own.find_own(call)) or find_route(call)
        return self._refuse(call, found, started) if isinstance(found, Refused) else self._proceed(found, started)

    def run_step(
        self,
        parent: RoutedCall,
        route: Route,
        given: dict[str, Any],
        path: str,
        number: str,
        *,
        flags: int = 0,
        journal: Journal | None = None,
    ) -> StepCall | Coroutine[Any, Any, StepCall]:
        """Call an endpoint for a composition. Every gate of the endpoint judges the caller of the composition.

        The result has the answer and the output. `flags` are those of `composition.step`. A workflow gives a `journal`.
        """
        outer = parent.request
        call = StepCall(
            parent, route, given, Request(route.method, path, "", outer.headers, b"", outer.connection), number
        )
        if flags & _MARKS:
            call.journaled, call.undoes = bool(flags & JOURNALED), bool(flags & UNDOES)
            call.apart |= bool(flags & APART)
        if journal is not None:
            call.journal = journal
        settlement = self._settlement
        if BUDGET_LIMIT not in outer.headers:
            flags |= UNLIMITED
        for judge in self._steps[flags >> 2]:
            refused = judge(call)
            if refused is not None:
                call.response = self._responder.refuse(call, refused)
                if settlement is not None and settlement.records(call, refused):
                    return _answer_step(call, settlement.record(call, call.response))
                return call
        if settlement is not None and settlement.concerns_step(call):
            call.settled = True
            call.request = settlement.request_of(call, _encode(given))
            return _answer_step(call, settlement.carry_out(call, self._invoke))
        outcome = self._invoke(call)
        if call.joined is not None:
            return self._complete_step(call, outcome)
        if outcome is _DONE:
            call.response = _DONE
            return call
        if isinstance(outcome, Response):
            return _answered(call, outcome)
        return self._complete_step(call, outcome)

    async def run_part(self, parent: RoutedCall, route: Route, given: dict[str, Any]) -> StepCall:
        """Call a function of the service that takes part in a method. The gates of a step judge the caller."""
        # What the function adds is committed with the answer of the method, whose record is that of both.
        outer = parent.request
        request = Request(route.method, route.endpoint.path, "", outer.headers, b"", outer.connection)
        call = StepCall(parent, route, given, request, "1")
        for judge in self._steps[(0 if BUDGET_LIMIT in outer.headers else UNLIMITED) >> 2]:
            refused = judge(call)
            if refused is not None:
                return _answered(call, self._responder.refuse(call, refused))
        outcome = self._invoke(call)
        answer = await outcome if isinstance(outcome, Coroutine) else outcome
        assert isinstance(answer, Response), "a function of a service has no effects of its own"
        if places := non_finite(call.output):
            return _answered(call, self._break(call, route, places))
        if call.joined is not None and status.is_success(answer.status):
            parent.joined = [*(parent.joined or ()), *call.joined]
        return _answered(call, answer)

    async def recall(self, call: RoutedCall) -> bytes | None:
        return None if self._settlement is None else await self._settlement.recall(call)

    async def note(self, call: RoutedCall, verdict: bytes) -> None:
        if self._settlement is not None:
            await self._settlement.note(call, verdict)

    def record_refusal(self, call: Call, refused: Refused) -> Answering:
        """Answer a call that its face has refused; it is recorded like one that a gate has refused."""
        return self._refuse(call, refused, perf_counter() if self._subscribers else 0.0)

    def malformed(self, fault: Malformed, connection: Connection) -> Response:
        return self._responder.malformed(fault, connection, self.server.routes)

    def _refuse(self, call: Call, refused: Refused, started: float) -> Answering:
        """Answer with the refusal of a gate, after recording it if required."""
        answer = self._record(call, self._responder.refuse(call, refused))
        return answer if not self._subscribers else self._emit(call, answer, started)

    def _record(self, call: Call, response: Response) -> Answering:
        settlement = self._settlement
        if settlement is None or not settlement.records(call, response):
            return response
        return settlement.record(call, response)

    def _emit(self, call: Call, answer: Answering, started: float) -> Answering:
        """Notify the subscribers of an exchange once its answer is complete."""
        if not isinstance(answer, Response):
            return self._emit_later(call, answer, started)
        exchange = Exchange(call, answer, perf_counter() - started)
        for subscriber in self._subscribers:
            subscriber(exchange)
        return answer

    async def _emit_later(self, call: Call, answer: Coroutine[Any, Any, Response], started: float) -> Response:
        try:
            response = await answer
        except asyncio.CancelledError:
            self._emit(call, self._responder.cancelled(call), started)
            raise
        self._emit(call, response, started)
        return response

    async def _complete(self, call: RoutedCall, outcome: Outcome) -> Response:
        """Await a handler, and commit the changes of state it returns."""
        settled = outcome if isinstance(outcome, Response | Effects) else await outcome
        if isinstance(settled, Response) and call.joined is None:
            answer = settled if settled.code is None else self._record(call, settled)
            return answer if isinstance(answer, Response) else await answer
        assert self._settlement is not None, "methods refuse to change state where there is no store"
        return await self._settlement.commit(call, settled)

    async def _with_new_syntheses(self, call: Call, refused: Refused, started: float) -> Response:
        """Look for a synthesis that another process has made, before there is no such endpoint."""
        assert self.server.own_endpoints is not None
        found: RoutedCall | Refused = refused
        try:
            await self.server.own_endpoints.refresh()
        except StoreError as error:
            _logger.log(level_of(error), "could not look for a synthesis of another process: %s", error)
        else:
            again = Call(call.request, self.server)
            again.principal, again.nonce = call.principal, call.nonce
            found = find_route(again)
        answer = self._refuse(call, found, started) if isinstance(found, Refused) else self._proceed(found, started)
        return answer if isinstance(answer, Response) else await answer

    async def _complete_step(self, call: StepCall, outcome: Outcome) -> StepCall:
        settled = outcome if isinstance(outcome, Response | Effects) else await outcome
        if isinstance(settled, Response) and call.joined is None:
            return _answered(call, settled)
        return _answered(call, await self._complete(call, settled))

    async def _with_new_keys(self, request: Request) -> Response:
        """Fetch the keys that verify credentials, then answer the request with them."""
        await self.server.principals.renew_keys()
        answer = self(request, renewed=True)
        return answer if isinstance(answer, Response) else await answer

    def _invoke(self, call: RoutedCall) -> Outcome:
        route = call.route
        try:
            if route.takes_call:
                if route.composes:
                    return self._compose(call, route)
                variables = copy_context()
                result = variables.run(route.call, call)
            else:
                variables = copy_context()
                state = self.server.state
                context = Context(call.request, call.principal, call.method, call.path, call.input, state, call)
                if not call.apart and is_in_task():
                    began = perf_counter()
                    try:
                        result = variables.run(run_call, route.call, call.input, context)
                    finally:
                        if perf_counter() - began > HELD:
                            self._report_holding(route, perf_counter() - began)
                    if type(result) is WaitingCoroutine:
                        watch = partial(self._report_holding, route)
                        return self._await(call, route, resume(result.coroutine, result.awaited, variables, watch))
                    return self._finish(call, route, result)
                result = variables.run(route.call, call.input, context)
            if type(result) is CoroutineType:
                begun = begin(result, variables, partial(self._report_holding, route), apart=call.apart)
                if not isinstance(begun, Finished):
                    return self._await(call, route, begun)
                result = begun.value
            return self._finish(call, route, result)
        except _FAILURES as error:
            return self._fail(call, route, error)

    def _compose(self, call: RoutedCall, route: Route) -> Outcome:
        """Run a composition, or EXECUTE. It needs no context variables: each of its steps has them."""
        outer = None if call.parent is None else call.parent.composing
        sent = IDEMPOTENCY_KEY in call.request.headers or route.takes_body_key
        keyed = sent and self._settlement is not None and self._settlement.is_keyed(call)
        call.composing = Composing(self._responder.new_id(), {} if outer is None else outer.spent, keyed)
        result = route.call(call, self)
        return self._await(call, route, result) if type(result) is CoroutineType else self._finish(call, route, result)

    async def _await(self, call: RoutedCall, route: Route, waiting: Coroutine[Any, Any, Any]) -> Response | Effects:
        try:
            return self._finish(call, route, await waiting)
        except _FAILURES as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                rest = take_outliving(error)
                if type(call) is not StepCall:  # its client has left, or the server stops
                    particulars = {"particulars": Exchange(call, self._responder.cancelled(call)).particulars}
                    more = "" if rest is None else "; its thread goes on"
                    _logger.warning(
                        "%s was cancelled before it was answered%s", route.endpoint, more, extra=particulars
                    )
                if rest is not None:
                    call.outliving = partial(self._outlive, call, route, rest)
                raise  # this request was cancelled, not something the handler awaited
            return self._fail(call, route, error)

    async def _outlive(
        self, call: RoutedCall, route: Route, rest: Callable[[], asyncio.Future[Any]]
    ) -> Response | Effects:
        """Make the answer of a call whose thread went on after it was cancelled."""
        try:
            return self._finish(call, route, await rest())
        except asyncio.CancelledError:
            raise  # it had not begun, or the server stops
        except _FAILURES as error:
            return self._fail(call, route, error)

    def _report_holding(self, route: Route, seconds: float) -> None:
        """Name a handler that held the event loop, once: nothing else was answered in the meantime."""
        handler, key = route.endpoint.handler, route.endpoint.key
        if not isinstance(handler, RegisteredFunction) or route.builtin or key in self._holding:
            return
        self._holding.add(key)
        advice = "remove inline=True" if handler.inline else "await what takes long, or declare it with `def`"
        message = (
            "%s: %s() held the event loop for %d ms, and no other call was answered; %s, so that it runs in a thread"
        )
        _logger.warning(message, route.endpoint, handler.function, seconds * 1000, advice)

    def _fail(self, call: RoutedCall, route: Route, error: BaseException) -> Response:
        """Answer for a handler that raised. Even formatting the exception may fail."""
        if isinstance(error, UnfitResult):
            return self._break(call, route, error.violations)
        if isinstance(error, RefusedError):
            return self._responder.refuse(call, error.refused)
        if isinstance(error, StoreError) and self._settlement is not None:
            return self._settlement.unavailable(call, error)  # a built-in method that reads the store
        try:
            refused = explain_error(call, route, error)
            if refused is not None:
                return self._responder.refuse(call, refused)
        except Exception as worse:  # noqa: BLE001 - it is logged, and the agent gets an answer in any case
            return self._report(call, route, "failed, and its exception cannot be shown", worse)
        if isinstance(error, Refusal):
            return self._report(call, route, f"raised Refusal({error.name!r}), which it does not declare")
        return self._report(call, route, "failed", error)

    def _report(self, call: RoutedCall, route: Route, what: str, error: BaseException | None = None) -> Response:
        """Answer 500 with only an id for the agent, by which the operator finds the reason in the log."""
        message = f"The handler of {route.endpoint} failed; the operator's log has the reason."
        response = self._responder.refuse(call, Refused(status.SERVER_ERROR, "server-error", message))
        particulars = Exchange(call, response).particulars
        _logger.error("%s %s", route.endpoint, what, exc_info=error, extra={"particulars": particulars})
        return response

    def _finish(self, call: RoutedCall, route: Route, result: Any) -> Response | Effects:
        if type(result) in _BUILT_IN:
            if type(result) is ItemStream:
                # The last message of a stream that breaks off is recorded like the refusal of a call.
                result.explain = lambda error: self._record(call, self._fail(call, route, error))
                return Response(status.OK, b"", route.block, self._responder.headers_of(call), stream=result)
            return result if isinstance(result, Effects) else self._responder.answer(call, result)
        declared, meaning = route.filter, call.request.semantic
        translates = meaning is not None and meaning.translates
        if declared is not None and call.hints is None and type(call) is not StepCall and not translates:
            written = declared.encode(result)
            if written is not None:
                return Response(status.OK, written, route.block, self._responder.headers_of(call))
        try:
            output, accepted = _select(call, route, result)
        except UnfitResult as unfit:
            return self._break(call, route, unfit.violations)
        if not accepted and not route.output.is_valid(output):
            return self._break(call, route, route.output.violations(output))
        if call.hints is not None:
            return self._shape(call, route, output, call.hints)
        if type(call) is StepCall:
            call.output = output
            outer = call.parent.composing
            if outer is not None:
                outer.output, outer.accepted_by = output, route.output
            if not call.settled:
                return _DONE
        body = _encode(output if type(call) is StepCall or not translates else meaning.translate_output(output))
        # `in` would first raise and drop an exception, because the left side of it may be a number.
        if body.find(b"null") >= 0 and (places := non_finite(output)):
            # JSON has no infinity and no NaN; `null` in their place would change the handler's answer.
            return self._break(call, route, places)
        return Response(status.OK, body, route.block, self._responder.headers_of(call))

    def _shape(self, call: RoutedCall, route: Route, output: Any, hints: TokenHints) -> Response:
        """Answer with the part of an output that the caller wants. All of it is validated."""
        if places := non_finite(output):
            return self._break(call, route, places)
        assert route.shaping is not None
        shaped, meaning = route.shaping.apply(hints, output), call.request.semantic
        if shaped is not UNCHANGED:
            shaped = shaped if meaning is None else meaning.translate_output(shaped)
            return Response(status.OK, _encode(shaped), route.block, self._responder.headers_of(call))
        block = HeaderBlock(*(pair for pair in route.block.pairs if pair[0] != "Content-Type"))
        return Response(status.NOT_MODIFIED, b"", block, self._responder.headers_of(call))

    def _break(self, call: RoutedCall, route: Route, violations: list[Violation]) -> Response:
        """Answer 500 for an output that breaks the contract. The log names the place, and no value but a datetime."""
        response = self._responder.refuse(call, broken_output(route, violations))
        particulars = Exchange(call, response).particulars
        # The rows of a list break it at one place of the schema.
        places = list(dict.fromkeys(one.schema_pointer or f"/{one.keyword}" for one in violations))
        named = ", ".join(places[:_MOST_PLACES])
        more = f" and {len(places) - _MOST_PLACES} more" if len(places) > _MOST_PLACES else ""
        zoneless = next((one for one in violations if one.keyword == "format" and "date-time" in one.message), None)
        _logger.error(
            "the output of %s breaks its schema at %s%s%s",
            route.endpoint,
            named,
            more,
            "" if zoneless is None else _ZONELESS.format(zoneless.pointer or "the output", zoneless.message),
            extra={"particulars": particulars},
        )
        return response


def _select(call: RoutedCall, route: Route, result: Any) -> tuple[Any, bool]:
    """Return what of a result is sent, and whether it is known to be valid. Raises Unfit."""
    composing = call.composing
    if composing is not None:  # a composition, whose steps have made plain values
        return result, result is composing.output and route.output is composing.accepted_by
    if result is None and route.may_return_none:
        return {}, False
    if route.filter is None:
        return msgspec.to_builtins(result, str_keys=True, enc_hook=dump_foreign), False
    return route.filter.select(result), route.filter.settles


def _answered(call: StepCall, response: Response) -> StepCall:
    """Add the answer to a step, and the output if only the answer has it: it is a replay or a built-in method's."""
    call.response = response
    if response.status < status.NOT_MODIFIED and call.output is None and response.body:
        output = _decode(response.body)
        call.output = output["result"] if call.route.builtin and "result" in output else output
    return call


async def _answer_step(call: StepCall, answer: Coroutine[Any, Any, Response]) -> StepCall:
    return _answered(call, await answer)
