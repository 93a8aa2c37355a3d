"""Settlement of a call with the store: what must be stored before the handler runs and before bytes are sent.

Sending a response acknowledges it. So everything it promises is one transaction, and it is sent after the commit: the
change of state, the answer under its idempotency key, its audit record.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, Protocol

import msgspec

from bespeak.errors import StoreError, StoreUnavailableError
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import CONFIRMATION_ID, IDEMPOTENCY_KEY, SESSION_ID
from bespeak.protocol.exchange.messages import Request, Response
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects
from bespeak.runtime.call import Call, JoinedCall, RoutedCall, StepCall
from bespeak.runtime.exchange import REPLAYED, Auditor, Exchange
from bespeak.runtime.idempotency import MOST_LOADED, Idempotency, KeptAnswer, KeyClaim, is_final, renew, restore
from bespeak.runtime.identity.agents import STALE
from bespeak.runtime.responder import Responder
from bespeak.runtime.sessions import SUSPENDED, TASK_PAUSED
from bespeak.state.store.commands.idempotency import ListKeys, Recorded, UseNonce
from bespeak.state.store.store import Command, Conflict, Sealed, Store

_logger = logging.getLogger(__name__)

_LATER: Final = frozenset({SUSPENDED, TASK_PAUSED, "semantic-profile-changed"})  # do not concern what was done before
_ADMITTED: Final = frozenset({SESSION_ID, CONFIRMATION_ID})
_SETTLED: Final = (Response, Effects)
_RETRY_AFTER: Final = ("Retry-After", "2")
_PATIENCE: Final = 1.0  # seconds in which threads of cancelled calls may end when the server stops
_PAUSE: Final = 0.5  # seconds between attempts to store answers that the store did not take

Invoke = Callable[[RoutedCall], "Response | Effects | Coroutine[Any, Any, Response | Effects]"]
Closing = tuple[Command, Callable[[Any, Response], Response] | None]
"""A command that is committed with an answer, and what its result does to the answer."""


class Admission(Protocol):
    """A check that admits a request with the help of the store: a session, a confirmation."""

    # Returns None if the call is admitted or not affected, a refusal, or a command whose result decides.
    def ask(self, call: RoutedCall) -> Command | Refused | None: ...
    # Judges the result of the command, which may be a Conflict; returns another command if that decides.
    def judge(self, call: RoutedCall, found: Any) -> Command | Refused | None: ...


class TaskAdmission(Admission, Protocol):
    """A check of the task of a call: whether it is paused, and what it means."""

    def concerns(self, call: RoutedCall) -> bool: ...


class Keeping(Protocol):
    """Keeps calls that may be repeated later, with their answers."""

    def keeps(self, call: RoutedCall) -> bool: ...
    def note(self, call: RoutedCall, response: Response) -> Command: ...


@dataclass(eq=False)
class Settlement:
    _store: Store
    _responder: Responder
    _idempotency: Idempotency
    _: KW_ONLY
    sessions: Admission | None = None
    pausing: TaskAdmission | None = None
    confirmations: Admission | None = None
    auditor: Auditor | None = None
    keeping: Keeping | None = None  # keeps calls that may be repeated later; None if nothing does
    _abandoned: set[asyncio.Task[None]] = field(init=False, default_factory=set)  # cancelled calls being recorded
    _outliving: set[asyncio.Task[None]] = field(init=False, default_factory=set)  # those that wait for a thread
    _paying: asyncio.Task[None] | None = field(init=False, default=None)  # stores answers that were not taken
    _faltering: bool = field(init=False, default=False)  # True if the store failed when an answer was last stored

    def __post_init__(self) -> None:
        self._look = self._store.look if self._store.sole else None

    async def start(self) -> None:
        """Load what is cached instead of looked up for each call."""
        if self._store.sole:
            self._idempotency.load(await self._store.read(ListKeys(MOST_LOADED + 1)))

    def concerns(self, call: RoutedCall) -> bool:
        """Return True if a call needs the store; most do not, and must not be slowed down."""
        given = call.request.headers
        if IDEMPOTENCY_KEY in given or SESSION_ID in given or CONFIRMATION_ID in given or call.nonce is not None:
            return True
        if self.pausing is not None and self.pausing.concerns(call):
            return True
        if self.keeping is not None and self.keeping.keeps(call):
            return True
        auditor = self.auditor
        if auditor is not None and (call.route.is_governed or (auditor.everything and auditor.audits(call))):
            return True
        return self._guards(call)

    def is_keyed(self, call: RoutedCall) -> bool:
        return isinstance(self._idempotency.wanted(call), KeyClaim)

    def request_of(self, call: StepCall, body: bytes) -> Request:
        """Return the request of a step. An idempotency key in it is that of the step."""
        request, claim = call.request, self._idempotency.wanted(call)
        headers = request.headers
        if call.journal is not None:
            headers = {**headers, IDEMPOTENCY_KEY: call.journal.key}
        if isinstance(claim, KeyClaim):
            headers = {**headers, IDEMPOTENCY_KEY: claim.key.rpartition(" ")[2]}
        return msgspec.structs.replace(request, headers=headers, body=body)

    async def recall(self, call: RoutedCall) -> bytes | None:
        """Return what a composition with the same key has noted; None if it has not."""
        claim = self._idempotency.verdict(call)
        found = await self._store.read(self._idempotency.find(claim))
        judged = self._idempotency.judge(claim, found)
        return judged.body if isinstance(judged, KeptAnswer) else None

    async def note(self, call: RoutedCall, verdict: bytes) -> None:
        """Note how a composition ended, under the key of its call."""
        noted = Response(status.OK, verdict)
        await self._store.do(self._idempotency.finish(self._idempotency.verdict(call), noted, noted.block))

    def concerns_step(self, call: StepCall) -> bool:
        """Return True if a step of a composition needs the store. Its caller has already been admitted."""
        composing = call.parent.composing
        route = call.route
        if call.journal is not None or (composing is not None and composing.is_keyed) or route.is_confirmed:
            return True
        if route.needs_key and self._idempotency.requires(route):
            return True
        return self.auditor is not None and self.auditor.audits(call)

    def _guards(self, call: RoutedCall) -> bool:
        """Return True if every call of the endpoint is examined before its handler runs."""
        return call.route.is_confirmed or self._idempotency.guards(call.route)

    def records(self, call: Call, refused: Refused | Response) -> bool:
        """Return True if a refusal must be recorded; not one for rate limits or an unreachable store."""
        if self.auditor is None or refused.status == status.RATE_LIMITED or refused.code == STALE:
            return False
        return self.auditor.audits_refusal(call, refused.status)

    async def record(self, call: Call, response: Response) -> Response:
        auditor = self.auditor
        if auditor is None or not (auditor.audits(call) or auditor.audits_refusal(call, response.status)):
            return response
        try:
            done = await self._store.do(auditor.entry(Exchange(call, response)))
        except StoreError as error:
            return self.unavailable(call, error)
        assert not isinstance(done, Conflict)
        return self._name_record(done[0], response)

    async def carry_out(self, call: RoutedCall, invoke: Invoke) -> Response:
        """Admit, invoke, commit."""
        try:
            # Most calls have at most a key, and each awaitable step costs about a microsecond.
            at_once = self._look is not None and self._is_plain(call)
            admitted = self._claim_here(call) if at_once else await self._admit(call)
        except StoreError as error:
            return self.unavailable(call, error)
        if isinstance(admitted, Refused):
            return await self.record(call, self._responder.refuse(call, admitted))
        if isinstance(admitted, KeptAnswer):
            kept = restore(admitted, call.route.block, self._responder.headers_of(call), REPLAYED)
            return await self.record(call, kept)
        renewal: asyncio.Task[None] | None = None
        outcome: Response | Effects | Coroutine[Any, Any, Response | Effects] | None = None
        try:
            outcome = self._owed(call, admitted)
            if outcome is None:
                if self._faltering:
                    # Test it with a write: no handler may run whose answer cannot be stored or recorded.
                    await self._store.do(UseNonce("trial", secrets.token_hex(8), 1.0))
                    self._faltering = False
                outcome = invoke(call)
            if not isinstance(outcome, _SETTLED):
                if admitted is not None and admitted.fence is not None:
                    renewing = renew(self._store, admitted, self._idempotency.lease)
                    renewal = asyncio.get_running_loop().create_task(renewing)
                outcome = await outcome
            return await self._settle(call, admitted, outcome)
        except (StoreError, asyncio.CancelledError) as error:
            return self._break_off(call, admitted, outcome, error, renewal)
        finally:
            if not hasattr(call, "outliving"):
                self._let_go(admitted, renewal)

    async def _settle(self, call: RoutedCall, claim: KeyClaim | None, outcome: Response | Effects) -> Response:
        if isinstance(outcome, Effects) or (call.joined is not None and status.is_success(outcome.status)):
            return await self._commit_effects(call, claim, outcome)
        return await self._commit(call, claim, outcome)

    def _let_go(self, claim: KeyClaim | None, renewal: asyncio.Task[None] | None) -> None:
        if renewal is not None:
            renewal.cancel()
        if claim is not None:
            self._idempotency.forget(claim)

    async def _abandon(self, call: RoutedCall, claim: KeyClaim | None) -> None:
        """Record a call that was cancelled while its handler ran, and release its key."""
        try:
            await self.record(call, self._responder.cancelled(call))
            await self._release(claim)
        except StoreError as error:
            _logger.warning("a cancelled call of %s could not be recorded: %s", call.route.endpoint, error)

    async def _outlive(self, call: RoutedCall, claim: KeyClaim | None, renewal: asyncio.Task[None] | None) -> None:
        """Hold the key of a cancelled call until its thread ends, and store its answer for the next attempt."""
        task = asyncio.current_task()
        assert task is not None
        self._outliving.add(task)
        outcome: Response | Effects | None = None
        try:
            outcome = await call.outliving()
            self._outliving.discard(task)
            await self._settle(call, claim, outcome)
        except StoreError as error:
            self._owe(call, claim, outcome)
            _logger.warning("the answer of a cancelled call of %s was not stored: %s", call.route.endpoint, error)
        except asyncio.CancelledError:
            self._outliving.discard(task)
            # If the server stops, the lease in the store goes on: nobody may begin at once what still runs.
            await self._abandon(call, None if task.cancelling() else claim)
        finally:
            self._let_go(claim, renewal)

    async def finish(self) -> None:
        """Wait until cancelled calls are recorded, and store the answers that the store did not take before."""
        if self._outliving:
            await asyncio.wait(self._outliving, timeout=_PATIENCE)
        for task in self._outliving:
            task.cancel()  # its thread goes on until the process ends
        while self._abandoned:
            await asyncio.wait(self._abandoned)
        if self._paying is not None:
            self._paying.cancel()
            await asyncio.wait([self._paying])
            await self._pay()

    def _break_off(
        self,
        call: RoutedCall,
        claim: KeyClaim | None,
        outcome: object,
        error: StoreError | asyncio.CancelledError,
        renewal: asyncio.Task[None] | None,
    ) -> Response:
        """Answer 503 for a store that failed; remember the answer that it does not have, and to test it next time."""
        # A call that was cancelled while its handler ran is recorded. If it was cancelled later, its transaction goes
        # on.
        if isinstance(outcome, Response) and outcome.stream is not None:
            self._watch(outcome.stream.aclose())  # nobody will read it
        if isinstance(error, asyncio.CancelledError):
            if not isinstance(outcome, _SETTLED):
                goes_on = hasattr(call, "outliving")
                self._watch(self._outlive(call, claim, renewal) if goes_on else self._abandon(call, claim))
            raise error
        self._owe(call, claim, outcome)
        return self.unavailable(call, error)

    def _owe(self, call: RoutedCall, claim: KeyClaim | None, outcome: object) -> None:
        """Remember an answer that the store did not take."""
        self._faltering = True
        if claim is not None and isinstance(outcome, Response):
            # Another process may take the key when its lease ends, so it is not enough to wait for the caller.
            commands = [command for command, _ in self._closing(call, claim, outcome)]
            self._idempotency.owe(claim, outcome, call.route.block, commands)
            if self._paying is None or self._paying.done():
                self._paying = asyncio.get_running_loop().create_task(self._pay_until_done(), name="bespeak-owed")

    def _watch(self, ending: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(ending)
        self._abandoned.add(task)
        task.add_done_callback(self._abandoned.discard)

    async def _pay_until_done(self) -> None:
        while self._idempotency.debts():
            await asyncio.sleep(_PAUSE)
            await self._pay()

    async def _pay(self) -> None:
        """Store the answers that the store did not take, until it fails again."""
        for debt in self._idempotency.debts():
            claim = debt.claim
            if claim.fence is None and self._idempotency.hold(claim) is not None:
                continue  # the request is repeated at this moment, and stores the answer itself
            try:
                # A Conflict: the first attempt has arrived after all, or another process has taken the key.
                await self._store.do(*debt.commands)
                self._idempotency.settle(debt)
            except StoreUnavailableError:
                return
            except StoreError as error:
                _logger.error("an answer cannot be stored", exc_info=error)
                self._idempotency.settle(debt)
            finally:
                self._idempotency.forget(claim)

    def _owed(self, call: RoutedCall, claim: KeyClaim | None) -> Response | None:
        """Return the answer of a request that was carried out while the store was unavailable; do not repeat it."""
        if claim is None or not self._idempotency.owes(claim):
            return None
        return self._idempotency.pay(claim, call.route.block, self._responder.headers_of(call))

    async def commit(self, call: RoutedCall, outcome: Response | Effects) -> Response:
        """Commit the effects of a method, or what a handler has added, for a call that needs nothing else."""
        try:
            return await self._settle(call, None, outcome)
        except StoreError as error:
            return self.unavailable(call, error)

    def _is_plain(self, call: RoutedCall) -> bool:
        """Return True if only an idempotency key has to be checked."""
        if call.parent is not None:
            return not self._guards(call)
        if self.pausing is not None and self.pausing.concerns(call):
            return False
        return call.nonce is None and _ADMITTED.isdisjoint(call.request.headers) and not self._guards(call)

    async def _admit(self, call: RoutedCall) -> KeyClaim | KeptAnswer | Refused | None:
        """Return a claim on the idempotency key, its stored answer, a refusal, or None for a call without a key."""
        if self._is_plain(call):
            return await self._claim_there(call)
        if call.nonce is not None:
            used = await self._store.do(UseNonce("signature", *call.nonce))
            if isinstance(used, Conflict):
                message = "This signature has already been used; sign each request with a new nonce."
                return Refused(status.UNAUTHORIZED, "signature-replayed", message)
        refused = None
        if call.parent is None:  # the session of a composition has admitted its steps
            refused = await self._ask(call, self.sessions) or await self._ask(call, self.pausing)
        if refused is not None:
            # An agent that suspended its session and lost the answer with the nonce repeats it in the same session.
            # What a task did before it was paused, or before its meaning changed, is answered again too.
            kept = await self._find_kept(call) if refused.code in _LATER else None
            return kept or refused
        claim = self._claim_here(call) if self._look is not None else await self._claim_there(call)
        if isinstance(claim, (Refused, KeptAnswer)):
            return claim
        if claim is not None and self._idempotency.owes(claim):
            return claim  # it was confirmed and carried out; only the answer is missing
        admitted = False
        try:
            # A stored answer needs no further confirmation, so this comes after the claim.
            refused = await self._ask(call, self.confirmations)
            admitted = refused is None
        finally:
            # A claim in memory has no lease, so it must be released after any failure.
            if claim is not None and not admitted:
                self._idempotency.forget(claim)
        if refused is None:
            return claim
        await self._release(claim)
        return refused

    async def _find_kept(self, call: RoutedCall) -> KeptAnswer | None:
        """Return the stored answer of the same request, if any, without claiming the key."""
        claim = self._idempotency.wanted(call)
        if not isinstance(claim, KeyClaim):
            return None
        judged = self._idempotency.judge(claim, await self._store.read(self._idempotency.find(claim)))
        return judged if isinstance(judged, KeptAnswer) else None

    async def _ask(self, call: RoutedCall, admission: Admission | None) -> Refused | None:
        if admission is None:
            return None
        asked = admission.ask(call)
        while isinstance(asked, Command):
            done = await self._store.do(asked)
            asked = admission.judge(call, done if isinstance(done, Conflict) else done[0])
        return asked

    def _claim_here(self, call: RoutedCall) -> KeyClaim | KeptAnswer | Refused | None:
        """Claim the key in memory, after a lookup in the store: no other process has claims."""
        idempotency = self._idempotency
        claim = idempotency.wanted(call)
        if not isinstance(claim, KeyClaim):
            return claim
        refused = idempotency.hold(claim)
        if refused is not None or idempotency.is_new(claim):
            return refused or claim
        assert self._look is not None
        judged: KeyClaim | KeptAnswer | Refused | None = None
        try:
            judged = idempotency.judge(claim, self._look(idempotency.find(claim)))
        finally:
            if judged is not claim:
                idempotency.forget(claim)
        return judged

    async def _claim_there(self, call: RoutedCall) -> KeyClaim | KeptAnswer | Refused | None:
        """Claim the key in the store, where every process sees it."""
        claim = self._idempotency.wanted(call)
        if not isinstance(claim, KeyClaim):
            return claim
        done = await self._store.do(self._idempotency.take(claim))
        assert not isinstance(done, Conflict)
        return self._idempotency.judge(claim, done[0])

    async def _commit(self, call: RoutedCall, claim: KeyClaim | None, outcome: Response) -> Response:
        closing = self._closing(call, claim, outcome)
        if not closing:
            await self._release(claim)
            return outcome
        done = await self._store.do(*[command for command, _ in closing])
        if isinstance(done, Conflict):
            return await self._lost(call)
        if claim is not None and not is_final(outcome):
            await self._release(claim)
        return _close(outcome, closing, done)

    async def _commit_effects(self, call: RoutedCall, claim: KeyClaim | None, outcome: Response | Effects) -> Response:
        """Commit an answer with its effects and the methods that its handler has added, each recorded as if called."""
        planned: list[tuple[JoinedCall, Effects]] = []
        for one in call.joined or ():
            added = one.route.call(one)
            added = await added if isinstance(added, Coroutine) else added
            if isinstance(added, Refused):
                return await self._commit(call, claim, self._responder.refuse(call, _blame(call, one.method, added)))
            if isinstance(added, Effects):
                planned.append((one, added))
        own = None if isinstance(outcome, Response) else outcome
        every = [*(() if own is None else (own,)), *(effects for _, effects in planned)]
        commands = [command for effects in every for command in effects.commands]
        made: list[Response] = []
        closing: list[Closing] = []

        def then(results: Sequence[Any]) -> Sequence[Command]:
            left = iter(results)
            answers = [effects.answer([next(left) for _ in effects.commands]) for effects in every]
            first = outcome if isinstance(outcome, Response) else self._responder.answer(call, answers.pop(0))
            made[:] = [first]
            closing[:] = self._closing(call, claim, first, None if own is None else own.recorded)
            for (one, effects), answer in zip(planned, answers, strict=True):
                response = self._responder.answer(one, answer)
                closing[:0] = [(command, None) for command, _ in self._closing(one, None, response, effects.recorded)]
            return [command for command, _ in closing]

        done = await self._store.do(*commands, then=then)
        if not isinstance(done, Conflict):
            for effects in every:
                if effects.committed is not None:
                    await effects.committed()
            if not is_final(made[0]):
                await self._release(claim)
            return _close(made[0], closing, done[len(commands) :])
        if made:  # the answer was built, and storing it failed
            return await self._lost(call)
        if own is not None and done.position < len(own.commands):
            return await self._answer_conflict(call, claim, own, done)
        methods = " or ".join(dict.fromkeys(one.method for one, _ in planned))
        refused = Refused(status.CONFLICT, done.reason, f"the store answers {done.reason!r}")
        return await self._commit(call, claim, self._responder.refuse(call, _blame(call, methods, refused)))

    async def _answer_conflict(
        self, call: RoutedCall, claim: KeyClaim | None, own: Effects, found: Conflict
    ) -> Response:
        """Answer a call whose effects cannot be made; what another process did with the same key may be the reason."""
        if claim is not None and claim.fence is not None:
            answered = await self._store.read(self._idempotency.find(claim))
            if isinstance(answered, Recorded):
                return await self._lost(call)
        await self._release(claim)
        return await self.record(call, self._responder.answer(call, own.answer(found)))

    def _closing(
        self, call: RoutedCall, claim: KeyClaim | None, response: Response, recorded: Mapping[str, Any] | None = None
    ) -> list[Closing]:
        """Return the commands that store an answer and record it; the record last, because it cannot be undone."""
        closing: list[Closing] = []
        if claim is not None and is_final(response):
            closing.append((self._idempotency.finish(claim, response, call.route.block), None))
        if isinstance(call, StepCall) and call.journal is not None:
            noted = call.journal.note(response)
            if noted is not None:
                closing.append((noted, call.journal.noted))
        if self.keeping is not None and self.keeping.keeps(call):
            closing.append((self.keeping.note(call, response), None))
        auditor = self.auditor
        if auditor is not None and (auditor.audits(call) or auditor.audits_refusal(call, response.status)):
            closing.append((auditor.entry(Exchange(call, response), recorded), self._name_record))
        return closing

    async def _release(self, claim: KeyClaim | None) -> None:
        command = None if claim is None else self._idempotency.release(claim)
        if command is not None:
            await self._store.do(command)

    async def _lost(self, call: RoutedCall) -> Response:
        """Answer for a request whose key was taken over while its handler ran: the other answer counts."""
        _logger.warning("%s took longer than the lease of its idempotency key and was taken over", call.route.endpoint)
        refused = Refused(
            status.CONFLICT,
            "idempotency-lease-lost",
            "The request took longer than its lease and was taken over; repeat it with the same key for its answer.",
            headers=(_RETRY_AFTER,),
        )
        return await self.record(call, self._responder.refuse(call, refused))

    def _name_record(self, sealed: Sealed, response: Response) -> Response:
        assert self.auditor is not None, "records are made by an auditor"
        headers = response.headers + self.auditor.headers(sealed)
        return Response(response.status, response.body, response.block, headers, response.code, response.stream)

    def unavailable(self, call: Call, error: StoreError) -> Response:
        """Build the 503 for state that cannot be read or stored now."""
        if not isinstance(error, StoreUnavailableError):
            _logger.error("%s failed in the store", call.method, exc_info=error)
        return self._responder.refuse(
            call,
            Refused(
                status.UNAVAILABLE,
                "store-unavailable",
                "This server cannot reach its store, so the request is not acknowledged; it may have been carried "
                "out. Try again later, with the same Idempotency-Key if you sent one.",
                headers=(_RETRY_AFTER,),
            ),
        )


def _blame(call: RoutedCall, methods: str, refused: Refused) -> Refused:
    """Return the refusal of a call whose handler has added a method that is refused; the log has the reason."""
    _logger.error("%s has added %s, which is refused: %s", call.route.endpoint, methods, refused.message)
    if refused.status in (status.RATE_LIMITED, status.UNAVAILABLE):
        return refused
    message = f"The handler of {call.route.endpoint} failed; the operator's log has the reason."
    return Refused(status.SERVER_ERROR, "server-error", message)


def _close(response: Response, closing: Sequence[Closing], results: Sequence[Any]) -> Response:
    """Return the response after the commit. Each result goes to the reader of its own command."""
    for (_, read), result in zip(closing, results, strict=True):
        if read is not None:
            response = read(result, response)
    return response
