"""Following a run for a caller that waits: how far it is, until it ends or goes no further by itself."""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import suppress
from typing import Final

import msgspec

from bespeak.extensions.workflows.engine import Workflow, Workflows
from bespeak.extensions.workflows.spec import Spec
from bespeak.extensions.workflows.store import ENDED, PAUSED, RUNNING, SLEEPING, STOPPED, WAITING
from bespeak.protocol.exchange.messages import PATIENCE, REPORT
from bespeak.state.store.store import Command, Result, Statement, Store

_FIRST: Final = 0.1  # seconds until the first look; most runs have ended then
_LONGEST: Final = 2.0  # seconds between two looks
_HELD: Final = (WAITING, PAUSED, STOPPED)  # states that end only when somebody acts
NESTED: Final = 1 << 21  # first number of steps inside others
BESIDE: Final = 1 << 62  # first number of what was computed beside a step


class Advance(msgspec.Struct, frozen=True):
    """How far a run is."""

    state: str
    due: float | None
    done: int  # steps that have ended
    last: int  # highest number of these
    asked: str | None  # what the last one was


class ReadAdvance(Command, frozen=True):
    workflow_id: str

    def steps(self) -> Result[Advance]:
        found = yield Statement("SELECT state, due FROM records WHERE record_id = ?", (self.workflow_id,))
        counted = yield Statement(
            "SELECT count(*), coalesce(max(number), 0) FROM steps WHERE workflow_id = ? AND number > 0 "
            "AND number < ? AND state NOT IN ('pending', 'started', 'waiting')",
            (self.workflow_id, BESIDE),
        )
        named = yield Statement(
            "SELECT asked FROM steps WHERE workflow_id = ? AND number = ?", (self.workflow_id, counted[0][1])
        )
        (state, due), (done, last) = found[0], counted[0]
        return Advance(state, due, done, last, named[0][0] if named else None)


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
    follows, pause, clock = patience == math.inf, _FIRST, asyncio.get_running_loop().time
    ends = clock() + (within if patience is None else patience)
    while True:
        changed = workflows.changed
        now: Advance = await store.read(ReadAdvance(workflow_id))
        held = now.state in _HELD
        if report is not None and (now.done or held):
            # Progress has to increase: a step that waits for somebody has begun.
            total = len(spec.steps) if spec.steps and now.last < NESTED else None
            report(now.done + 0.5 if held else now.done, total, now.state if held else _name(spec, now))
        left = ends - clock()
        sleeps = now.state == SLEEPING and now.due is not None and now.due - time.time() > left
        if now.state in ENDED or (not follows and (held or sleeps)) or left <= 0:
            break
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await changed.wait()
        pause = min(pause * 1.5, _LONGEST)
    again = await workflows.find(workflow_id)
    assert again is not None, "a workflow that has begun is kept"
    return again


def _name(spec: Spec, now: Advance) -> str:
    step = spec.steps[now.last - 1] if 0 < now.last <= len(spec.steps) else None
    return now.asked or (RUNNING if step is None else step.name or f"{step.method} {step.path}")
