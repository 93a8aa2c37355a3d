"""Removal of imported resources by CANCEL (Tier 2 5.5): one by its id or its key, or a whole collection."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any, Final

from bespeak.extensions.acquire.store import CountOwned, FindResource, RemoveResources
from bespeak.extensions.integrate.jobs import Job, Progress, Step, Steps, begin
from bespeak.extensions.integrate.store import RemoveLinked
from bespeak.protocol.exchange.instant import write_instant
from bespeak.runtime.answer import Effects
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.handling import effects

_AT_ONCE: Final = 1_000  # resources of one transaction: other writers wait for it
_RESOURCE: Final = re.compile(r"res-([1-9][0-9]{0,17})")
_WHOLE: Final = "resources:"  # before the name of a collection, so that none is removed by mistake


async def remove_resources(call: RoutedCall, target: str) -> Effects | None:
    """Remove `res-N`, `COLLECTION/KEY` or `resources:COLLECTION` of the caller; None if it owns no such resource.

    Nothing brings them back. A large collection is removed by a job.
    """
    store, owner = call.store, call.agent_id or ""
    by_id, (collection, _, key) = _RESOURCE.fullmatch(target), target.partition("/")
    told = _tell(target)
    if by_id is not None or key:
        named = FindResource(int(by_id[1])) if by_id else FindResource(owner=owner, collection=collection, key=key)
        found = await store.read(named)
        if found is None or found.owner != owner:
            return None
        return _remove(told, RemoveResources(owner, found.collection, 1, found.position))
    name = target.removeprefix(_WHOLE)
    count = await store.read(CountOwned(owner, 10**9, name)) if name != target else 0
    if count > _AT_ONCE:
        return await begin(call, {"collection": name}, total=count, told={**told, "status": "cancelling"})
    return _remove(told, RemoveResources(owner, name, _AT_ONCE)) if count else None


def _tell(target: str) -> dict[str, Any]:
    return {"target_id": target, "kind": "resource", "cancelled_at": write_instant(time.time())}


def _remove(told: Mapping[str, Any], command: RemoveResources) -> Effects:
    return effects(
        [RemoveLinked(command)], lambda found: {**told, "status": "cancelled", "details": {"removed": found[0]}}, {}
    )


async def carry_removal(call: RoutedCall, job: Job) -> Steps:
    """Remove the collection of a job, some resources at a time."""
    removed, left = job.done, True
    command = RemoveLinked(RemoveResources(call.agent_id or "", job.given["collection"], _AT_ONCE))
    while left:
        noting = _Noting(job, removed)
        yield Step(noting, (command,))
        left, removed = noting.removed > removed, noting.removed
    receipt = {**_tell(_WHOLE + job.given["collection"]), "status": "cancelled", "details": {"removed": removed}}
    yield Step(lambda _: Progress(None, removed, job.total, unit="rows", result=receipt))


class _Noting:
    """Notes how many resources have been removed."""

    def __init__(self, job: Job, before: int) -> None:
        self._job, self._before = job, before
        self.removed = before

    def __call__(self, results: Any) -> Progress:
        self.removed = self._before + results[0]
        return Progress(None, self.removed, self._job.total, unit="rows")
