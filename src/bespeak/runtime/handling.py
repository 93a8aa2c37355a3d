"""How handlers of built-in methods are written: they raise refusals, and conflicts of commands are a table.

Below is how they run functions of the service, which know things that are not records.
"""

from __future__ import annotations

import asyncio
import inspect
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, ParamSpec, TypeVar, overload

import msgspec

from bespeak.contract.participant import UNKNOWN
from bespeak.contract.schema.validation import refuse_input
from bespeak.contract.standard.definition import AMBIGUOUS, INVALID_TIME, StandardMethod
from bespeak.contract.standard.methods import STANDARD
from bespeak.errors import StoreError
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import read_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import Call, RoutedCall, refuse_without_needs
from bespeak.state.store.commands.records import CountOpen, FindNamed, FindRecord, Record
from bespeak.state.store.store import Command, Conflict, Store

if TYPE_CHECKING:
    from bespeak.protocol.exchange.messages import Response
    from bespeak.runtime.bindings.participant import Joined
    from bespeak.runtime.call import Journal, StepCall
    from bespeak.runtime.route import Route

P = ParamSpec("P")
T = TypeVar("T")

Conflicts = Mapping[str, Refused | Callable[[Mapping[str, Any]], Refused]]
"""Refusals by the reason of a conflict, "" for any other reason. A function gets the details of the conflict."""


class RefusedError(Exception):
    """Ends a handler with a refusal, which `handler` turns into its answer."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.message)
        self.refused = refused


@overload
def handler(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T | Refused]]: ...
@overload
def handler(function: Callable[P, T]) -> Callable[P, T | Refused]: ...
def handler(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make the handler of a built-in method from a function that raises its refusals."""
    return _handle(function, lambda _: None)


@overload
def stateful(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T | Refused]]: ...
@overload
def stateful(function: Callable[P, T]) -> Callable[P, T | Refused]: ...
def stateful(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make the handler of a method that requires a store and an identified agent."""
    return _handle(function, check_needs)


def _handle(function: Callable[..., Any], check: Callable[[RoutedCall], None]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def answer_later(call: RoutedCall, *args: Any) -> Any:
            try:
                check(call)
                return await function(call, *args)
            except RefusedError as error:
                return error.refused

        return answer_later

    @wraps(function)
    def answer(call: RoutedCall, *args: Any) -> Any:
        try:
            check(call)
            return function(call, *args)
        except RefusedError as error:
            return error.refused

    return answer


def check_needs(call: RoutedCall) -> None:
    """Refuse with 501 on a server without a store, with 262 for an anonymous caller."""
    passed(refuse_without_needs(call))


def refusal(
    by: StandardMethod | int, code: str, message: str, /, *, retry_after: int | None = None, **details: Any
) -> RefusedError:
    """Return the exception for a refusal: one that a method declares, or one with a status of its own."""
    number = by if isinstance(by, int) else by.find(code).status
    headers = () if retry_after is None else (("Retry-After", str(retry_after)),)
    return RefusedError(Refused(number, code, message, details, headers))


def invalid(member: str, fault: str) -> RefusedError:
    """Return the exception for a member of the input that passes the schema but cannot be used: 422."""
    code = f"invalid-{member.replace('_', '-')}"
    return refusal(status.UNPROCESSABLE, code, f"`{member}` {fault}", field=f"/{member}")


def passed(value: T | Refused) -> T:
    """Return a value, or end the handler with the refusal that took its place."""
    if isinstance(value, Refused):
        raise RefusedError(value)
    return value


def check_size(member: str, size: int, most: int) -> None:
    """Refuse content that has more bytes than it may have: 413."""
    if size <= most:
        return
    code, message = f"{member.replace('_', '-')}-too-large", f"`{member}` must not be larger than {most // 1024} KiB."
    raise refusal(status.CONTENT_TOO_LARGE, code, message, field=f"/{member}", max_bytes=most)


def check_content(given: Mapping[str, Any], member: str, most: int) -> None:
    """Refuse a member of the input that has more bytes as JSON than it may have: 413."""
    check_size(member, len(msgspec.json.encode(given[member])), most)


_YEAR: Final = 366 * 86400.0
_SHARES: Final = 16  # parts of what is free, of which one is not counted again
_MOST_OWNERS: Final = 10_000


def read_time(given: Mapping[str, Any], member: str) -> float | None:
    """Parse a timestamp of the input into seconds since 1970; None if it is not given."""
    if member not in given:
        return None
    seconds = read_instant(given[member])
    if seconds is None:
        message = f"is {given[member][:80]!r}, which is not a valid time; write it like 2026-11-16T08:00:00Z."
        raise invalid_time(member, message)
    return seconds


def read_future(
    given: Mapping[str, Any], member: str, *, now: float | None = None, most: float = _YEAR
) -> float | None:
    """Parse a timestamp of the input that must be in the future, at most some seconds away; None if it is not given."""
    seconds, now = read_time(given, member), time.time() if now is None else now
    if seconds is None or now < seconds <= now + most:
        return seconds
    fault = "in the past" if seconds <= now else "more than a year away"
    raise invalid_time(member, f"must be in the future; {given[member][:80]} is {fault}.")


def invalid_time(member: str, fault: str) -> RefusedError:
    """Return the exception for a time that cannot be used: 400."""
    return RefusedError(INVALID_TIME.refuse(f"`{member}` {fault}", field=f"/{member}"))


async def find_own(call: RoutedCall, kinds: tuple[str, ...], record_id: str) -> Record | None:
    """Find a record that the caller or its principal owns; those of others do not exist for it."""
    record: Record | None = await call.store.read(FindRecord(kinds, record_id))
    named = tuple(kind for kind in kinds if kind in call.server.kinds and call.server.kinds[kind].named)
    if record is None and named and call.agent_id is not None:
        found: list[Record] = await call.store.read(FindNamed(named, call.agent_id, record_id))
        if len(found) > 1:
            message = f"Several things were begun with the Task-ID {record_id[:80]!r}; name one by its id."
            raise RefusedError(AMBIGUOUS.refuse(message, ids=[one.record_id for one in found]))
        record = found[0] if found else None
    return None if record is None or record.owner not in (call.agent_id, call.principal.principal_id) else record


class OpenLimit:
    """Bounds what an agent has open, without counting all of it for every new thing."""

    # After a count it lets pass a sixteenth of what was free, so that up to sixteen processes together stay below.

    def __init__(self, kind: str, most: int) -> None:
        self._kind = kind
        self.most = most
        self._free: dict[str, int] = {}  # what each owner may still open before the next count
        self._counting = asyncio.Lock()

    async def admits(self, store: Store, owner: str) -> bool:
        while not self._free.get(owner):
            async with self._counting:
                if self._free.get(owner):
                    continue  # another call has counted
                open_now: int = await store.read(CountOpen(self._kind, owner, self.most))
                if open_now >= self.most:
                    return False
                if len(self._free) >= _MOST_OWNERS:
                    self._free.clear()
                self._free[owner] = max((self.most - open_now) // _SHARES, 1)
        self._free[owner] -= 1
        return True


def effects(
    commands: Sequence[Command],
    result: Callable[[Sequence[Any]], Mapping[str, Any] | Envelope],
    conflicts: Conflicts | Refused,
    committed: Callable[[], Awaitable[None]] | None = None,
    recorded: Mapping[str, Any] | None = None,
) -> Effects:
    """Return effects whose answer is what `result` makes of their results. A refusal it raises keeps the changes."""

    def answer(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            return refuse_conflict(results, conflicts)
        try:
            made = result(results)
        except RefusedError as error:
            return error.refused
        return made if isinstance(made, Envelope) else Envelope(made)

    return Effects(tuple(commands), answer, committed, recorded)


def refuse_conflict(conflict: Conflict, conflicts: Conflicts | Refused) -> Refused:
    if isinstance(conflicts, Refused):
        return conflicts
    found = conflicts.get(conflict.reason) or conflicts[""]
    return found if isinstance(found, Refused) else found(conflict.details)


def to_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def new_id(prefix: str) -> str:
    return f"{prefix}-{secrets.token_hex(16)}"


_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_OK: Final = "ok"  # state of a thing whose function does not tell one
_OF_ROUTE: Final = frozenset({"code", "message", "method", "path"})  # members that name a route no agent can call
_AGAIN: Final = frozenset({status.TIMEOUT, status.RATE_LIMITED})
_LOST: Final = "idempotency-lease-lost"
_UNAVAILABLE: Final = "store-unavailable"
_MOST_DETAILS: Final = 4096  # bytes of the details of a refusal that is kept


def usable_functions(call: Call, kind: str) -> dict[str, Joined]:
    """Return the functions of a kind, by name, for which the caller has the scopes."""
    declared: Mapping[str, Joined] = call.server.registrar.participants.get(kind, {})
    return {name: one for name, one in declared.items() if not call.principal.scopes.missing(one.participant.scopes)}


class Thing(NamedTuple):
    """Something of the service, as the function that knows it has answered."""

    kind: str  # name under which the function is declared
    output: Mapping[str, Any]

    @property
    def state(self) -> str:
        """State that the function tells in `status` or `state`."""
        told = next((self.output[name] for name in ("status", "state") if name in self.output), None)
        return told[:256] if isinstance(told, str) and told else _OK


async def ask_service(
    call: RoutedCall, kind: str, target: str, parameters: Mapping[str, Any], needed: Mapping[str, Refused] = _NOTHING
) -> Thing | None:
    """Offer an id to functions of the service in the order of their declaration; return None if none knows it.

    `booking:77` offers the id `77` to `booking` alone. A function whose scopes the caller lacks is passed over, unless
    it is picked. Parameters go to those that take them; `needed` has the refusals if one is not taken.
    """
    declared: Mapping[str, Joined] = call.server.registrar.participants.get(kind, {})
    name, _, rest = target.partition(":")
    picked = declared.get(name) if rest else None
    unfit: Refused | None = None
    for joined in declared.values() if picked is None else (picked,):
        route, participant = joined.routes["run"], joined.participant
        if picked is None and call.principal.scopes.missing(participant.scopes):
            continue
        takes = list(route.endpoint.input_schema["properties"])
        given = {takes[0]: target if picked is None else rest}
        given |= {member: value for member, value in parameters.items() if member in takes[1:]}
        wrong = route.input.violations(given)
        if any(one.pointer == f"/{takes[0]}" for one in wrong):
            continue  # the function has no ids of this form
        lacking = next((refused for member, refused in needed.items() if member not in takes), None)
        if wrong or lacking is not None:
            unfit = unfit or lacking or refuse_input(call.method, call.path, wrong)  # another one may know the id
            continue
        try:
            output = await run_function(call, route, given) or {}
        except RefusedError as error:
            if error.refused.code != UNKNOWN:
                raise
            continue
        return Thing(participant.name, output)
    if unfit is not None:
        raise RefusedError(unfit)
    return None


@dataclass(eq=False)
class ResultJournal:
    """Notes what a function has returned, in the transaction of its effects."""

    key: str  # Idempotency-Key of the function
    make: Callable[[bytes], Command]  # makes the command of a result, which is JSON

    def note(self, response: Response) -> Command | None:
        return self.make(response.body or b"null") if status.is_success(response.status) else None

    def noted(self, _: Any, response: Response) -> Response:
        return response


async def finish_step(running: StepCall | Coroutine[Any, Any, StepCall]) -> tuple[StepCall, Response]:
    """Wait for a step; return it with its answer."""
    step = await running if isinstance(running, Coroutine) else running
    assert step.response is not None, "the step has been answered"
    return step, step.response


async def run_function(
    call: RoutedCall,
    route: Route,
    given: dict[str, Any],
    *,
    method: str = "",
    number: str = "",
    journal: Journal | None = None,
) -> Any:
    """Run a function of the service and return its output. Raises what it refuses, without its hidden path.

    Without a `number` it is a part of the call: what it adds is one transaction with the answer, and its refusals have
    the status that `method` gives them, by default that of its route. With one it is a step with records of its own,
    whose output the `journal` notes: None is returned if another process has noted one meanwhile, and a StoreError
    raised if it could not be noted.
    """
    dispatcher, path = call.server.dispatcher, route.endpoint.path
    if number:
        running = dispatcher.run_step(call, route, given, path, number, journal=journal)
    else:
        running = dispatcher.run_part(call, route, given)
    step, response = await finish_step(running)
    if status.is_success(response.status) or response.code == _LOST:
        return step.output
    if journal is not None and response.code == _UNAVAILABLE:
        raise StoreError(f"the outcome of {route.endpoint} could not be noted")
    body = msgspec.json.decode(response.body) if response.body else {}
    error = body.get("error", {}) if isinstance(body, dict) else {}
    details = {name: value for name, value in error.items() if name not in _OF_ROUTE}
    details = details if not number or len(msgspec.json.encode(details)) <= _MOST_DETAILS else {}
    code, number_of = response.code or "failed", response.status
    if not number and response.status == status.UNPROCESSABLE:
        declared = {one.name: one.status for one in STANDARD[method or route.method].errors}
        number_of = declared.get(code, response.status)
    _, kind, name, _ = path.split("/")
    message = str(error.get("message", "")).replace(f"{route.method} {path}", f"the {kind} {name}")
    headers = tuple(pair for pair in response.headers if pair[0] == "Retry-After")
    raise RefusedError(Refused(number_of, code, message, details, headers))


async def read_checked(call: RoutedCall, joined: Joined, by: StandardMethod | int, member: str) -> Any:
    """Return a member of the input as the declared type of a participant has accepted it."""
    try:
        return await run_function(call, joined.routes["read"], {"data": call.input[member]})
    except RefusedError as error:
        if error.refused.code != "input-validation-failed":
            raise
        wrong = [(one["pointer"].removeprefix("/data"), one["message"]) for one in error.refused.details["violations"]]
        violations = [{"field": f"/{member}{pointer}", "message": message} for pointer, message in wrong]
        named, schema = joined.participant, joined.routes["read"].endpoint.output_schema
        message = f"The {member} is not valid for the {named.kind} {named.name}: {violations[0]['message']}."
        details = {"field": violations[0]["field"], "violations": violations, "schema": schema}
        raise refusal(by, f"invalid-{member}", message, **details) from None


def may_pass_later(refused: Refused) -> bool:
    """Return True for failures and refusals that another attempt may not meet."""
    return refused.status >= status.SERVER_ERROR or refused.status in _AGAIN
