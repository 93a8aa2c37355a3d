"""Beyond 13.1: the base protocol's headers on every response."""

from __future__ import annotations

from typing import Final

from bespeak.app.conformance.check import Check, Outcome, failed, faults, passed
from bespeak.app.conformance.published import mapping
from bespeak.app.conformance.subject import Subject


async def _server_id(subject: Subject) -> Outcome:
    expected = mapping(subject.manifest.get("server")).get("server_id")
    bare = [seen for seen in subject.exchanges if not seen.header("Server-ID")]
    other = [seen for seen in subject.exchanges if expected and seen.header("Server-ID") not in (None, expected)]
    wrong = [f"{len(bare)} of {len(subject.exchanges)} responses have no Server-ID"] if bare else []
    wrong += [f"{len(other)} responses have a Server-ID other than the manifest's {expected!r}"] if other else []
    return faults(wrong, *(bare + other)[:2])


async def _task_id(subject: Subject) -> Outcome:
    seen = await subject.send("DISCOVER", "/methods", agent_id=subject.agent_id, task_id="conformance-1")
    echoed = seen.header("Task-ID")
    return passed(seen) if echoed == "conformance-1" else failed(f"Task-ID came back as {echoed!r}", seen)


CHECKS: Final = (
    Check("core-01", "Task-ID is echoed", "core 2.4", _task_id, "SHOULD", needs_manifest=False),
    Check("core-02", "every answer carries the manifest's Server-ID", "core 2.4", _server_id, needs_manifest=False),
)
