"""The journal of one workflow as its process holds it: what is known of its steps, and how the rest is noted."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from bespeak.contract.handler import Refusal
from bespeak.contract.schema.validation import non_finite
from bespeak.errors import BespeakError
from bespeak.extensions.workflows import states
from bespeak.extensions.workflows.store import END, EndRun, JournalSteps, NoteSteps, ParkRun, StepRow
from bespeak.protocol import status
from bespeak.protocol.exchange.messages import Response
from bespeak.protocol.exchange.refusal import Fault, Refused
from bespeak.runtime.call import RoutedCall, parties_of
from bespeak.runtime.composition.engine import Asked
from bespeak.runtime.expressions.pool import ExpressionFault
from bespeak.runtime.extension import ANNOUNCE
from bespeak.runtime.functions.annotations import dump_foreign
from bespeak.runtime.handling import to_json
from bespeak.state.store.commands.cases import ESCALATION, OpenCase

_FRESH: Final = 1.0  # seconds for which the state last read counts: another process may pause the workflow at any time
TAKEN: Final = "taken over"  # state of a journal whose workflow another process has taken over
_VOID: Final = -1  # fence that no claim has: the store refuses every note
# States of steps that are not taken again.
SETTLED: Final = (states.DONE, states.SKIPPED, states.UNDONE, states.NOT_UNDONE)
INVALID: Final = "invalid-reference"
INTERNAL: Final = "internal"  # member of the noted error of an exception, whose text is for the operator
_HIDDEN: Final = b'{"code":"failed","message":"The code of the service failed; the log has the reason."}'
Note = NoteSteps | JournalSteps | EndRun
MOST_RESULT: Final = 1024 * 1024  # bytes of what one Python function returns
TOO_LATE: Final = "wait-timeout"
encode_value = msgspec.json.Encoder(enc_hook=dump_foreign, order="deterministic").encode
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode = msgspec.json.Decoder().decode


class StepError(BespeakError):
    """A call or step of a workflow has failed. It has the noted form when it is raised first, as in every replay.

    `code` and `message` say why: of an exception its class and text, of a refusal its own. `status` is that of the
    answer, and 0 without one. `error` has all members of a refusal.
    """

    def __init__(self, error: Mapping[str, Any], code: int = 0) -> None:
        self.error = error
        self.status = code
        self.code = str(error.get("code", ""))
        self.message = str(error.get("message", ""))
        super().__init__(self.message or self.code)


class WaitTimeoutError(StepError):
    """What a workflow waited for has not come in time."""


class WorkflowJournal:
    """Rows by the number of their step. Rows of steps that change nothing are written with the next one that does."""

    def __init__(
        self, workflow_id: str, fence: int, lease: float, rows: Iterable[StepRow] = (), state: str = states.RUNNING
    ) -> None:
        self.workflow_id = workflow_id
        self.fence = fence
        self.lease = lease
        self.rows = {row.number: row for row in rows}
        self.state = state  # of the workflow in the store when it was last written
        self._learned = time.monotonic()
        self._pending: dict[int, StepRow] = {}
        self._lazy: set[int] = set()
        self._claim: tuple[int, str] | None = None

    @property
    def is_doubtful(self) -> bool:
        """True if the workflow may have been paused since it was last written."""
        return time.monotonic() - self._learned > _FRESH

    @property
    def has_pending(self) -> bool:
        """True if something is not written that must not become something else when it is asked for again."""
        return not self._pending.keys() <= self._lazy

    def doubt(self) -> None:
        self._learned = 0.0

    def learn(self, state: str) -> None:
        self.state, self._learned = state, time.monotonic()

    def add(self, row: StepRow, *, lazy: bool = False) -> None:
        """Take a row that is written with the next command; a `lazy` one would become the same again."""
        self.rows[row.number] = row
        self._pending[row.number] = row
        if lazy:
            self._lazy.add(row.number)

    def refuse_next(self, steps: int, refused: Refused) -> None:
        """Note why the next step is not taken, and at the end of a function: the caller must not act any more."""
        error = to_json({"code": refused.code, "message": refused.message})
        for number in range(1, steps + 1) if steps else (END,):
            row = self.rows.get(number)
            if row is None or row.state not in SETTLED:
                self.add(StepRow(number, 1 if row is None else row.attempt, states.FAILED, refused.status, error))
                return

    def adopt(self, fence: int, state: str) -> None:
        """Take a later claim of this process: the steps that run here count under it.

        If another process had a claim in between, it may have done the same steps, and nothing more is noted here.
        """
        self._claim = fence, state
        if fence == self.fence + 1:
            self.fence, self.state = fence, states.RUNNING if state == states.PAUSED else state
        else:
            self.fence, self.state = _VOID, TAKEN

    def release(self) -> JournalSteps | None:
        """Note nothing more; return the command that makes the workflow due if this process has adopted a claim."""
        self.fence, self.state = _VOID, TAKEN
        if self._claim is None:
            return None
        (fence, state), self._claim = self._claim, None
        return JournalSteps(self.workflow_id, fence, (), self.lease, state, state, delay=0.0)

    def write(self, state: str | None = None, *, delay: float | None = None, kept: float | None = None) -> JournalSteps:
        """Return the command that writes what is pending, and the state of the workflow.

        If it cannot be carried out, the drive ends, and the next one begins with what the store has.
        """
        rows, state = self._take(), state or self.state
        return JournalSteps(self.workflow_id, self.fence, rows, self.lease, state, self.state, delay=delay, kept=kept)

    def note(self) -> NoteSteps:
        return NoteSteps(self.workflow_id, self.fence, self._take())

    def park(self, state: str, delay: float, signals: tuple[str, ...], cases: tuple[str, ...]) -> ParkRun:
        return ParkRun(self.workflow_id, self.fence, self._take(), delay, state, signals, cases, self.state)

    def renew(self) -> JournalSteps:
        """Return the command that renews the lease; what is paused or waits has none, and is due when it is due."""
        state = states.CANCELLING if self.state == states.CANCELLING else states.RUNNING
        return JournalSteps(self.workflow_id, self.fence, (), self.lease, state, state)

    def _take(self) -> tuple[StepRow, ...]:
        rows, self._pending = tuple(self._pending.values()), {}
        return rows


class StepJournal:
    """Notes the answer of a call, in the transaction of the call: `make` returns the command for a success."""

    def __init__(self, journal: WorkflowJournal, key: str, make: Callable[[Response], Note], *, builtin: bool) -> None:
        self.key = key
        self._journal, self._make, self._builtin = journal, make, builtin
        self._note: Note | None = None

    def note(self, response: Response) -> Note | None:
        """Return the command that notes a success. What to do about a failure is decided later."""
        if not status.is_success(response.status):
            return None
        # The store may build the commands of a unit a second time. What a built-in method answers may differ then; for
        # any other the program has gone ahead already.
        if self._note is None or self._builtin:
            for pending in () if self._note is None else self._note.rows:
                self._journal.add(pending)
            self._note = self._make(response)
        return self._note

    def noted(self, state: str, response: Response) -> Response:
        """Take the state of the workflow that the note has found; return the response as it is."""
        self._journal.learn(state)
        return response


def open_case(call: RoutedCall, case_id: str, agent_id: str, digest: str, subject: Any, **more: Any) -> OpenCase:
    """Return the command that asks the recipient of all cases for a decision."""
    server, told = call.server, to_json(subject)
    recipient = server.cases.default_recipient
    announcement = server.hooks[ANNOUNCE](server, case_id, agent_id, recipient, msgspec.Raw(told.encode()))
    more |= {"announcement": announcement, "parties": parties_of(call)}
    return OpenCase(case_id, ESCALATION, agent_id, recipient, digest, told, **more)


def answered(response: Response, *, builtin: bool) -> str:
    """Return the output in an answer as JSON; a built-in method has it in an envelope."""
    body = response.body or b"null"
    return (bytes(_members(body).get("result", b"null")) if builtin and response.body else body).decode()


def failed_row(number: int, attempt: int, response: Response, *, hidden: bool = False) -> StepRow:
    body = msgspec.json.decode(response.body) if response.body else {}
    error = body.get("error", {}) if isinstance(body, dict) else {}
    if hidden:  # nobody can call its route
        error = {name: value for name, value in error.items() if name not in ("method", "path")}
    waits = response.status == status.AUTHORIZATION_REQUIRED and error.get("code") == "confirmation-required"
    case_id = error.get("confirmation_id") if waits else None
    state = states.WAITING if waits else states.FAILED
    return StepRow(number, attempt, state, response.status, to_json(error), waits_for=case_id)


def shown_error(text: str) -> msgspec.Raw:
    """Return a noted error as agents read it: not what an exception of the service's own code says."""
    return msgspec.Raw(_HIDDEN if f'"{INTERNAL}":true' in text else text.encode())


def interrupted_row(row: StepRow, why: str = "The server stopped") -> StepRow:
    """Return the row of something that was interrupted while it ran, and is not run again."""
    message = f"{why} while it ran. How far it came is not known, so it was not run again."
    said = to_json({"code": "interrupted", "message": message})
    return msgspec.structs.replace(row, state=states.FAILED, output=said, ended=time.time())


def fault_error(fault: Fault) -> StepError:
    """Return the error of a step whose input or condition has no value."""
    code = fault.code if isinstance(fault, ExpressionFault) else INVALID
    return StepError({"code": code, "message": fault.message})


def digest_of(asked: Asked) -> int:
    """Return the checksum of an input that is JSON already."""
    return zlib.crc32(asked.given) if type(asked.given) is bytes else 0


def written(value: Any) -> str:
    text = encode_value(value).decode()
    if "null" in text and non_finite(msgspec.to_builtins(value, enc_hook=dump_foreign)):
        raise ValueError("JSON has no infinity and no NaN")
    if len(text) > MOST_RESULT:
        most = f"{MOST_RESULT} is the maximum. Keep it elsewhere, and return its name."
        raise StepError({"code": "result-too-large", "message": f"The result has {len(text)} bytes; {most}"})
    return text


def said_of(error: BaseException, seconds: float | None = None) -> dict[str, Any]:
    """Return the noted form of an exception."""
    if isinstance(error, StepError):
        return dict(error.error)
    if isinstance(error, Refusal):
        return {"code": error.name, "message": error.message, **error.details}
    if isinstance(error, TimeoutError) and seconds is not None and not str(error):
        return {"code": "timeout", "message": f"It took longer than {seconds:g} s."}
    return {"code": type(error).__name__, "message": str(error)[:4096], INTERNAL: True}


def raised(row: StepRow) -> StepError:
    error = _decode(row.output)
    kind = WaitTimeoutError if error.get("code") == TOO_LATE else StepError
    return kind(error, row.code)
