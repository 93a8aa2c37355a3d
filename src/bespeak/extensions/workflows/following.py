"""Following a run for a caller that waits: how far it is, until it ends or goes no further by itself."""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import suppress
from typing import Final

from bespeak.extensions.workflows.engine import Workflow, Workflows
from bespeak.extensions.workflows.spec import Spec
from bespeak.extensions.workflows.store import ENDED, PAUSED, RUNNING, SLEEPING, STOPPED, WAITING
from bespeak.protocol.exchange.messages import PATIENCE, REPORT
from bespeak.state.store.store import Command, Result, Statement, Store

_FIRST: Final = 0.1  # seconds until the first look; most runs have ended then
_LONGEST: Final = 2.0  # seconds between two looks
_HELD: Final = (WAITING, PAUSED, STOPPED)  # states that end only when somebody acts
NESTED: Final = 1 << 21  # first number of steps inside others


class ReadProgress(Command, frozen=True):
    """Read the state of a run, when it is due, how many of its steps have ended, and the highest number of those."""

    workflow_id: str

    def steps(self) -> Result[tuple[str, float | None, int, int]]:
        rows = yield Statement(
            "SELECT r.state, r.due, count(s.number), coalesce(max(s.number), 0) FROM records AS r LEFT JOIN steps AS s "
            "ON s.workflow_id = r.record_id AND s.number > 0 AND s.state NOT IN ('pending', 'started', 'waiting') "
            "WHERE r.record_id = ? GROUP BY r.record_id",
            (self.workflow_id,),
        )
        return rows[0][0], rows[0][1], rows[0][2], rows[0][3]


async def follow(workflows: Workflows, store: Store, workflow_id: str, spec: Spec, within: float) -> Workflow:
    """Return a run when it goes no further by itself, or after some seconds; a patient caller waits longer.

    A caller that follows work to its end, however long it takes, gets it when it has ended.
    """
    report, patience = REPORT.get(), PATIENCE.get()
    if report is None and patience is None:
        return await workflows.wait(workflow_id, within)
    found = await workflows.wait(workflow_id, min(_FIRST, within))
    if found.record.state in ENDED:
        return found
    follows, pause = patience == math.inf, _FIRST
    ends = asyncio.get_running_loop().time() + (within if patience is None else patience)
    while True:
        changed = workflows.changed
        state, due, done, last = await store.read(ReadProgress(workflow_id))
        held = state in _HELD
        if report is not None and (done or held):
            # Progress has to increase: a step that waits for somebody has begun.
            report(done + 0.5 if held else done, _total(spec, last), state if held else _name(spec, last))
        left = ends - asyncio.get_running_loop().time()
        sleeps = state == SLEEPING and due is not None and due - time.time() > left
        if state in ENDED or (not follows and (held or sleeps)) or left <= 0:
            break
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await changed.wait()
        pause = min(pause * 1.5, _LONGEST)
    again = await workflows.find(workflow_id)
    assert again is not None, "a workflow that has begun is kept"
    return again


def _total(spec: Spec, last: int) -> int | None:
    return len(spec.steps) if spec.steps and last < NESTED else None


def _name(spec: Spec, last: int) -> str:
    if not 0 < last <= len(spec.steps):
        return RUNNING
    step = spec.steps[last - 1]
    return step.name or f"{step.method} {step.path}"
