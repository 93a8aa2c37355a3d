"""What a workflow is to do, on whose authority: plain data that is stored with it; and what became of its steps.

A step is a call, steps `together`, steps `for_each` element of a list, a `delay`, or an approval; CHAIN and BATCH as
calls are lists of steps inside another. Steps refer to what earlier steps returned. `{"$from": "search.items[0].id"}`
anywhere inside a value stands for that value: the name or number of a step, then members and positions. `{"$expr":
"steps.search.items[0].price * 2.0"}` stands for the value of an expression, which knows the earlier steps that have
an identifier as their name. A list inside another knows the names around it; from outside, only its output is known,
and the steps of `together`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bespeak.contract.procedure import MOST_ITEMS
from bespeak.contract.standard.orchestrate import LISTS
from bespeak.extensions.workflows import states
from bespeak.extensions.workflows.journal import INVALID, StepError, shown_error
from bespeak.extensions.workflows.store import BESIDE, BITS, END, WORKFLOW, JournalSteps, StepRow
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.gates import find_route
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.records import ChangeRecord, Record
from bespeak.state.store.store import Command

if TYPE_CHECKING:
    from bespeak.extensions.workflows.engine import Workflow

_NAME: Final = re.compile(r"\{(\w+)\}")


class Retry(msgspec.Struct, frozen=True, omit_defaults=True):
    """How often a call is tried if its failure may pass, and the seconds before the second attempt."""

    attempts: int
    delay: float = 0.2


class Approval(msgspec.Struct, frozen=True, omit_defaults=True):
    question: str
    who: str | None = None  # None for the recipient of all cases
    within: float | None = None  # seconds after which it fails; None for the time of the workflow


class Each(msgspec.Struct, frozen=True, omit_defaults=True):
    items: Any  # value of the list
    steps: tuple[StepSpec, ...] = ()
    call: StepSpec | None = None  # the only step
    max_items: int = MOST_ITEMS
    name: str = msgspec.field(name="as", default="item")  # by which the steps refer to the element
    at_once: int = 1


class StepSpec(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    method: str = ""  # empty for a step that is not a call
    path: str = "/"
    parameters: dict[str, Any] = {}
    name: str | None = None
    on_failure: str | None = None
    when: str | None = None  # expression without whose truth the step is skipped
    compensate: StepSpec | None = None
    # Id of a procedure of the operator that the step runs in place of a call; its input is that of the workflow.
    procedure: str | None = None
    undo: StepSpec | None = None  # another name of `compensate`
    together: tuple[StepSpec, ...] = ()
    for_each: Each | None = None
    delay: float | dict[str, Any] | None = None
    approve: Approval | None = None
    timeout: float | None = None  # seconds for one attempt
    retry: Retry | None = None
    output: Any = None  # shape of the output; None for the output as it is

    @property
    def undoing(self) -> StepSpec | None:
        return self.undo or self.compensate

    @property
    def nested(self) -> Block | None:
        """The steps inside this one; None for a call, a delay or an approval."""
        if self.method and self.method not in LISTS:  # asked for at every step
            return None
        if self.together:
            return Block(self.together, "together", parallel=True)
        if self.for_each is not None:
            each = self.for_each
            return Block(each.steps or (each.call or self,), "for_each/steps" if each.steps else "for_each/call")
        if not self.method or self.path != "/":
            return None
        given, member = self.parameters, LISTS[self.method]
        return Block(
            msgspec.convert(given.get(member, ()), tuple[StepSpec, ...]),
            f"parameters/{member}",
            on_failure=given.get("on_failure", "abort"),
            propagates=False if self.method == "BATCH" else given.get("context_propagation"),
            parallel=self.method == "BATCH" and given.get("execution_mode") != "sequential",
            partial=given.get("partial_success", False),
        )

    @property
    def value(self) -> Any:
        """What is computed from earlier steps before this one begins."""
        if self.for_each is not None:
            return self.for_each.items
        return self.parameters if self.nested is None and not isinstance(self.delay, dict) else self.delay

    @property
    def is_simple(self) -> bool:
        """True for a call without conditions and references."""
        is_call = self.method != "" and self.method not in LISTS and is_plain(self.parameters)
        return is_call and self.when is None and self.output is None and self.undoing is None

    @property
    def title(self) -> str:
        """What the step is, for people."""
        if self.method:
            return f"{self.method} {self.path}"
        return "together" if self.together else "for_each" if self.for_each else "approve" if self.approve else "delay"

    @property
    def sought(self) -> str:
        """Path by which the endpoint is found: `{names}` that the parameters have stand for any value."""
        if "{" not in self.path:
            return self.path
        return _NAME.sub(lambda found: "-" if found[1] in self.parameters else found[0], self.path)


class Block(msgspec.Struct, frozen=True, gc=False):
    """A list of steps inside another, and what it says otherwise than the one around it."""

    steps: tuple[StepSpec, ...]
    at: str  # where a step has it
    on_failure: str | None = None  # None for that of the list around it
    propagates: bool | None = None  # None for that of the list around it
    parallel: bool = False
    partial: bool = False


def find_step(call: Call, method: str, path: str) -> RoutedCall | Refused:
    """Find the endpoint that a step would call for the caller of `call`."""
    routes = call.routes
    known = routes.steps.get((method, path))
    # The gates would find the same: an endpoint that everybody sees, at a path without parameters.
    if known is not None and not (known.is_hidden or known.synthesis_id or "{" in path or routes.redirects):
        is_allowed = method in routes.allowed and method not in routes.catalog.legacy
        if is_allowed:
            return RoutedCall(call, known)
    asked = Call(msgspec.structs.replace(call.request, method=method, path=path, query="", body=b""), call.server)
    asked.principal = call.principal
    return find_route(asked)


class Spec(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    method: str  # method that began it: CHAIN, BATCH, RUN or EXECUTE
    steps: tuple[StepSpec, ...]
    authority: Authority
    deadline: float  # time by which it must have ended, in seconds since 1970
    on_failure: str = "abort"
    propagates: bool = False  # True if steps may use what earlier ones returned
    parallel: bool = False
    partial: bool = False  # True if a failed call does not fail the others
    given: dict[str, Any] | None = None  # input of a procedure, which its steps may refer to; None for other workflows
    name: str | None = None  # id of the procedure or the plan; None for other workflows
    result: Any = None  # shape of the output of the whole; None for the output of the last step
    callback: str | None = None  # address that is told the end
    workflow: str | None = None  # name of the workflow function; None for a list of steps
    version: int = 1  # version of the function with which it began


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Spec).decode


ELEMENT: Final = 7  # bits among them for the step inside an element of a list; the others are the index


def output_number(step: StepSpec, number: int) -> int:
    """Return the number of the row with the output of a step; it is another one if the output was given a shape."""
    return number | BESIDE if step.output is not None and step.nested is None else number


def groups_of(number: int) -> list[int]:
    """Return the places of a step in the lists around it, from the outermost one."""
    groups: list[int] = []
    while number:
        groups.insert(0, number & (1 << BITS) - 1)
        number >>= BITS
    return groups


FROM: Final = "$from"
EXPRESSION: Final = "$expr"
INPUT: Final = "input"  # name by which the steps of a procedure refer to its input
_PATH: Final = re.compile(r"[A-Za-z0-9_-]+(\.[^.\[\]]+|\[\d{1,6}\])*")
_PART: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_DEEPEST: Final = 32
# Bytes that references and expressions put into the inputs of one workflow: copies of copies grow without end.
MOST_COPIED: Final = 8 * 1024 * 1024


class Room:
    """Bytes that may still be copied."""

    def __init__(self, left: int = MOST_COPIED) -> None:
        self._left = left

    def take(self, value: Any) -> Any:
        """Count and return a value that is copied. Raises StepError if there is no room for it."""
        self.take_bytes(len(msgspec.json.encode(value)) if self._left >= 0 else 0)
        return value

    def take_bytes(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise _invalid(f"references copy more than {MOST_COPIED // 1024} KiB into the inputs of steps")


def check_references(value: Any, known: Collection[str], depth: int = 0) -> str | None:
    """Return what is wrong with the references inside a value; `known` are the names of earlier steps."""
    if depth > _DEEPEST:
        return f"parameters are nested more than {_DEEPEST} levels deep"
    if isinstance(value, dict):
        if FROM in value:
            path = value[FROM]
            if len(value) != 1 or not isinstance(path, str) or _PATH.fullmatch(path) is None:
                advice = "write the name of a step and a path, like search.items[0].id"
                return f"{str(path)[:80]!r} is not a valid reference; {advice}"
            name = re.split(r"[.\[]", path, maxsplit=1)[0]
            return f"{path[:80]!r} refers to {name!r}, which is not an earlier step" if name not in known else None
        if EXPRESSION in value:
            is_one = len(value) == 1 and isinstance(value[EXPRESSION], str)
            return None if is_one else f"an object with {EXPRESSION} has nothing but the text of an expression"
        value = list(value.values())
    inner = value if isinstance(value, list) else ()
    return next((fault for one in inner if (fault := check_references(one, known, depth + 1))), None)


def is_plain(value: Any) -> bool:
    """Return True for an object of texts, numbers and the like, in which nothing refers to anything."""
    if type(value) is not dict or FROM in value or EXPRESSION in value:
        return False
    return not any(type(one) is dict or type(one) is list for one in value.values())


def expressions_in(value: Any) -> Iterator[str]:
    """Yield the expressions inside a value whose references are valid."""
    if isinstance(value, dict):
        if EXPRESSION in value:
            yield value[EXPRESSION]
            return
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from expressions_in(one)


def variables_of(names: Iterable[str], bare: Collection[str]) -> dict[str, str]:
    """Return the step that each variable of expressions means; `bare` are names of the input and of elements."""
    return {one if one in bare else f"steps.{one}": one for one in names if one.isidentifier() and one.isascii()}


def resolve(
    value: Any, outputs: Mapping[str, Any], computed: Mapping[str, Any] | None = None, room: Room | None = None
) -> Any:
    """Replace references and `computed` expressions. Raises StepError if one leads nowhere or copies too much."""
    room = room or Room()
    if isinstance(value, dict):
        if FROM in value:
            return room.take(_follow(value[FROM], outputs))
        if EXPRESSION in value and computed is not None:
            return room.take(computed[value[EXPRESSION]])
        return {name: resolve(one, outputs, computed, room) for name, one in value.items()}
    return [resolve(one, outputs, computed, room) for one in value] if isinstance(value, list) else value


def _invalid(message: str) -> StepError:
    return StepError({"code": INVALID, "message": message})


def _follow(path: str, outputs: Mapping[str, Any]) -> Any:
    name = re.split(r"[.\[]", path, maxsplit=1)[0]
    try:
        found = outputs[name]
    except KeyError:
        raise _invalid(f"{path!r} refers to a step that returned nothing") from None
    for match in _PART.finditer(path, len(name)):
        member, position = match.groups()
        if member is not None and isinstance(found, dict) and member in found:
            found = found[member]
        elif position is not None and isinstance(found, list) and int(position) < len(found):
            found = found[int(position)]
        else:
            raise _invalid(f"{path!r} leads nowhere: there is no {match.group()!r}")
    return found


def repeat_commands(
    record: Record, rows: Sequence[StepRow], delay: float = 0.0, authority: Authority | None = None
) -> tuple[Command, ...] | str:
    """Return the commands that let a failed workflow run again, or why that is not possible.

    It has as much time as it had in the beginning, and the authority of whoever repeats it, if that is an agent.
    """
    if any(row.state in (states.UNDONE, states.NOT_UNDONE) for row in rows):
        return f"steps of {record.record_id} have been undone"
    spec = decode(record.data)
    deadline = time.time() + delay + spec.deadline - record.created
    again = msgspec.structs.replace(spec, deadline=deadline, authority=authority or spec.authority)
    failed = tuple(msgspec.structs.replace(row, state=states.PENDING) for row in rows if row.state == states.FAILED)
    more: dict[str, Any] = {"version": record.version, "data": encode(again).decode(), "delay": delay}
    going = ChangeRecord(record.record_id, (WORKFLOW,), (states.FAILED,), states.RUNNING, **more)
    return going, JournalSteps(record.record_id, record.fence, failed, 0.0, delay=delay)


MOST_TOLD: Final = 1000  # steps inside one step that a receipt tells of
_ANSWERED: Final = (states.DONE, states.UNDONE)


def receipt_steps(workflow: Workflow) -> list[dict[str, Any]]:
    """Return what became of each step, for a receipt. Steps that have not begun are pending."""
    if workflow.spec.workflow is not None:
        rows = islice((row for row in workflow.rows if row.number > 0), MOST_TOLD)
        return [_tell({"step": row.number, "asked": row.asked, "status": row.state}, row, row) for row in rows]
    return list(_list(workflow.spec.steps, 0, {row.number: row for row in workflow.rows}))


def _list(
    steps: Sequence[StepSpec], base: int, rows: Mapping[int, StepRow], element: int | None = None
) -> Iterator[dict[str, Any]]:
    for place, step in enumerate(steps, 1):
        number = base | place
        row = rows.get(number)
        entry: dict[str, Any] = {"step": place} if element is None else {"step": place, "element": element}
        if step.method:
            entry["method"], entry["path"] = step.method, step.path
        else:
            entry["kind"] = step.title
        entry["status"] = states.PENDING if row is None else row.state
        if step.name is not None:
            entry["name"] = step.name
        if row is not None:
            _tell(entry, row, rows.get(output_number(step, number), row))
            block, inner, listed = step.nested, number << BITS, rows.get(number | BESIDE)
            if block is not None and step.for_each is None:
                entry["steps"] = list(islice(_list(block.steps, inner, rows), MOST_TOLD))
            elif block is not None:
                count = 0 if listed is None or listed.state != states.DONE else len(msgspec.json.decode(listed.output))
                inside = (_list(block.steps, inner | index << ELEMENT, rows, index) for index in range(count))
                entry["steps"] = list(islice(chain.from_iterable(inside), MOST_TOLD))
        yield entry


def _tell(entry: dict[str, Any], row: StepRow, kept: StepRow) -> dict[str, Any]:
    """Add what became of a step; `kept` is the row with the shape of its output."""
    entry["attempts"] = row.attempt
    if row.code:
        entry["code"] = row.code
    if row.state in _ANSWERED:
        if kept.state in _ANSWERED:
            entry["output"] = msgspec.Raw(kept.output.encode())
        else:
            entry["error"] = shown_error(kept.output)
    elif row.output.startswith("{"):
        entry["error"] = shown_error(row.output)
    elif row.output != "null":  # it waits
        entry["until"] = write_instant(float(row.output))
    return entry


def outcome_of(workflow: Workflow) -> dict[str, Any]:
    """Return the output of a workflow that is completed, or the error of one that has failed; nothing for any other."""
    return tell_outcome(workflow.spec, workflow.record.state, workflow.rows)


def ran_out(workflow: Workflow) -> bool:
    """Return True for steps that have failed because their time was over."""
    failed = [row for row in workflow.rows if row.state == states.FAILED]
    is_late = not failed or any(row.number == END and row.code == status.TIMEOUT for row in failed)
    return workflow.record.state == states.FAILED and is_late


def tell_outcome(spec: Spec, state: str, rows: Iterable[StepRow]) -> dict[str, Any]:
    known = {row.number: row for row in rows}
    end = known.get(END)
    if spec.workflow is not None and state in (states.FAILED, states.STOPPED):
        return {} if end is None else {"error": shown_error(end.output)}
    if state == states.COMPLETED:
        if end is not None and end.state == states.DONE:
            return {"output": msgspec.Raw(end.output.encode())}
        # The shape of the output could not be made.
        told: dict[str, Any] = {}
        if end is not None and end.state == states.SKIPPED:
            told["error"] = msgspec.Raw(end.output.encode())
        last = len(spec.steps)
        row = known.get(output_number(spec.steps[-1], last)) if last and not spec.parallel else None
        return told if row is None or row.state != states.DONE else {"output": msgspec.Raw(row.output.encode()), **told}
    if state != states.FAILED:
        return {}
    if end is not None and end.state == states.FAILED:  # not a step, but what runs it
        return {"error": shown_error(end.output)}
    failed = next((row for row in known.values() if row.state == states.FAILED and row.output != "null"), None)
    if failed is None:  # only the time can have ended it
        return {"error": {"code": "timeout", "message": "The time of the workflow ran out."}}
    return {"error": msgspec.Raw(failed.output.encode())}
