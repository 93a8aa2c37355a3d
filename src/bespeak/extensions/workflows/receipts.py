"""Receipts of workflows: what became of each step, and of the whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bespeak.extensions.workflows import states
from bespeak.extensions.workflows.journal import shown_error
from bespeak.extensions.workflows.spec import ELEMENT, Spec, StepSpec, output_number
from bespeak.extensions.workflows.store import BESIDE, BITS, END, StepRow
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant

if TYPE_CHECKING:
    from bespeak.extensions.workflows.engine import Workflow

MOST_TOLD: Final = 1000  # steps inside one step that a receipt tells of
_ANSWERED: Final = (states.DONE, states.UNDONE)
_decode = msgspec.json.Decoder().decode


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
                count = 0 if listed is None or listed.state != states.DONE else len(_decode(listed.output))
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
