"""What a workflow is to do, on whose authority: plain data that is stored with it.

Steps refer to what earlier steps returned. A parameter `{"$from": "search.items[0].id"}` anywhere inside the
parameters stands for that value: the name or number of a step, then members and positions. `{"$expr":
"steps.search.items[0].price * 2.0"}` stands for the value of an expression, which knows the earlier steps that have
an identifier as their name.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.grammar.syntax import fill_path
from bespeak.extensions.workflows.store import (
    FAILED,
    NOT_UNDONE,
    PENDING,
    RUNNING,
    UNDONE,
    WORKFLOW,
    JournalSteps,
    StepRow,
)
from bespeak.protocol.exchange.refusal import Fault, Refused
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.gates import find_route
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.records import ChangeRecord, Record
from bespeak.state.store.store import Command

_NAME: Final = re.compile(r"\{(\w+)\}")


class StepSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    method: str
    path: str = "/"
    parameters: dict[str, Any] = {}
    name: str | None = None
    on_failure: str | None = None
    when: str | None = None  # expression without whose truth the step is skipped
    compensate: StepSpec | None = None
    # Id of a procedure of the operator that the step runs in place of a call; its input is that of the workflow.
    procedure: str | None = None

    @property
    def sought(self) -> str:
        """Path by which the endpoint is found: `{names}` that the parameters have stand for any value."""
        if "{" not in self.path:
            return self.path
        return _NAME.sub(lambda found: "-" if found[1] in self.parameters else found[0], self.path)

    def path_for(self, given: dict[str, Any]) -> str:
        filled = fill_path(self.path, given) if "{" in self.path else (self.path, None)
        return self.sought if isinstance(filled, Fault) else filled[0]


def find_step(call: Call, method: str, path: str) -> RoutedCall | Refused:
    """Find the endpoint that a step would call for the caller of `call`."""
    asked = Call(msgspec.structs.replace(call.request, method=method, path=path, query="", body=b""), call.server)
    asked.principal = call.principal
    return find_route(asked)


class Spec(msgspec.Struct, frozen=True, omit_defaults=True):
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
    result: dict[str, Any] | None = None  # output of the whole with references to steps; None for that of the last step
    callback: str | None = None  # address that is told the end
    workflow: str | None = None  # name of the workflow function; None for a list of steps
    version: int = 1  # version of the function with which it began

    def name_of(self, number: int) -> str:
        """Return the name of a step, by which others refer to its output."""
        return self.steps[number - 1].name or str(number)


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Spec).decode


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

    def take(self, value: Any) -> Fault | None:
        """Count a value that is copied; return a Fault if there is no room for it."""
        if self._left >= 0:
            self._left -= len(msgspec.json.encode(value))
        if self._left >= 0:
            return None
        return Fault(f"references copy more than {MOST_COPIED // 1024} KiB into the inputs of steps")


def check_references(value: Any, known: Collection[str], depth: int = 0) -> str | None:
    """Return what is wrong with the references inside a value; `known` are the names of earlier steps."""
    if depth > _DEEPEST:
        return f"parameters are nested more than {_DEEPEST} levels deep"
    if isinstance(value, dict):
        if FROM in value:
            return _check_reference(value, known)
        if EXPRESSION in value:
            is_one = len(value) == 1 and isinstance(value[EXPRESSION], str)
            return None if is_one else f"an object with {EXPRESSION} has nothing but the text of an expression"
        return next((fault for one in value.values() if (fault := check_references(one, known, depth + 1))), None)
    if isinstance(value, list):
        return next((fault for one in value if (fault := check_references(one, known, depth + 1))), None)
    return None


def _check_reference(value: Mapping[str, Any], known: Collection[str]) -> str | None:
    path = value[FROM]
    if len(value) != 1 or not isinstance(path, str) or _PATH.fullmatch(path) is None:
        return (
            f"{str(path)[:80]!r} is not a valid reference; write the name of a step and a path, like search.items[0].id"
        )
    name = re.split(r"[.\[]", path, maxsplit=1)[0]
    return f"{path[:80]!r} refers to {name!r}, which is not an earlier step" if name not in known else None


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


def variables_of(names: Iterable[str]) -> dict[str, str]:
    """Return the variables of expressions: the name of each, and that of the step or input that it means."""
    return {one if one == INPUT else f"steps.{one}": one for one in names if one.isidentifier() and one.isascii()}


def resolve(
    value: Any, outputs: Mapping[str, Any], computed: Mapping[str, Any] | None = None, room: Room | None = None
) -> Any | Fault:
    """Replace references in a value, and `computed` expressions; a Fault if one leads nowhere or copies too much."""
    room = room or Room()
    if isinstance(value, dict):
        if FROM in value:
            return _copied(_follow(value[FROM], outputs), room)
        if EXPRESSION in value and computed is not None:
            return _copied(computed[value[EXPRESSION]], room)
        made = {name: resolve(one, outputs, computed, room) for name, one in value.items()}
        return next((one for one in made.values() if isinstance(one, Fault)), made)
    if isinstance(value, list):
        items = [resolve(one, outputs, computed, room) for one in value]
        return next((one for one in items if isinstance(one, Fault)), items)
    return value


def _copied(found: Any, room: Room) -> Any | Fault:
    return found if isinstance(found, Fault) else room.take(found) or found


def _follow(path: str, outputs: Mapping[str, Any]) -> Any | Fault:
    name = re.split(r"[.\[]", path, maxsplit=1)[0]
    if name not in outputs:
        return Fault(f"{path!r} refers to a step that returned nothing", path)
    found = outputs[name]
    for match in _PART.finditer(path, len(name)):
        member, position = match.groups()
        if member is not None and isinstance(found, dict) and member in found:
            found = found[member]
        elif position is not None and isinstance(found, list) and int(position) < len(found):
            found = found[int(position)]
        else:
            return Fault(f"{path!r} leads nowhere: there is no {match.group()!r}", path)
    return found


def repeat_commands(
    record: Record, rows: Sequence[StepRow], delay: float = 0.0, authority: Authority | None = None
) -> tuple[Command, ...] | str:
    """Return the commands that let a failed workflow run again, or why that is not possible.

    It has as much time as it had in the beginning, and the authority of whoever repeats it, if that is an agent.
    """
    if any(row.state in (UNDONE, NOT_UNDONE) for row in rows):
        return f"steps of {record.record_id} have been undone"
    spec = decode(record.data)
    deadline = time.time() + delay + spec.deadline - record.created
    again = msgspec.structs.replace(spec, deadline=deadline, authority=authority or spec.authority)
    failed = tuple(msgspec.structs.replace(row, state=PENDING) for row in rows if row.state == FAILED)
    data = encode(again).decode()
    return (
        ChangeRecord(record.record_id, (WORKFLOW,), (FAILED,), RUNNING, version=record.version, data=data, delay=delay),
        JournalSteps(record.record_id, record.fence, failed, 0.0, delay=delay),
    )
