"""SYNC: a collection of the caller and one of another server are brought to the same rows (Tier 2 6.3).

Both sides are compared with what they last agreed on, row by row: so a change of one side is told from a conflict, and
a row that has vanished from one that is new. A large synchronization is a job with a step for each page; its rows, what
was agreed on and the checkpoint are one transaction. Rows that were pushed before a crash are found to agree.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, NamedTuple

import msgspec

from bespeak.extensions.acquire.store import (
    CountOwned,
    FindKeys,
    ListResources,
    NewRow,
    PutResources,
    RemoveResources,
    digest_of,
)
from bespeak.extensions.data.collection import list_collections
from bespeak.extensions.integrate.jobs import (
    JOB,
    QUEUED,
    RUNNING,
    Job,
    Progress,
    Step,
    StepConflictError,
    Steps,
    begin,
    decode_job,
)
from bespeak.extensions.integrate.methods import MOST_RESOURCES, check_rows
from bespeak.extensions.integrate.remote import PAGE, SYNC, RemoteCollection, contradiction, find_remote
from bespeak.extensions.integrate.store import FindAgreed, ForgetAgreed, HasAgreed, NoteAgreed, RemoveLinked
from bespeak.protocol.exchange.instant import write_instant
from bespeak.runtime.answer import Effects
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.handling import effects, new_id, refusal, stateful
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.records import ListRecords
from bespeak.state.store.store import Command

_KEY: Final = "id"
_MOST_LISTED: Final = 100  # conflicts and rows that were skipped, of a receipt
_MOST_CHANGES: Final = 5  # times that rows are compared again because they have changed meanwhile
_EMPTY_PAGES: Final = 100  # pages without rows in a row that a remote may send
_COUNTED: Final = ("pulled", "pushed", "deleted", "agreed", "skipped", "conflicts")


class _Plan(msgspec.Struct, frozen=True):
    sync_id: str  # the same for every run with this resource and this remote
    run: str
    resource: str
    collection: str
    key: str | None  # of the only row; None for all
    remote: str
    remote_collection: str
    direction: str
    policy: str
    member: str  # member that identifies a row


class _Place(msgspec.Struct):
    phase: str = "remote"
    cursor: str | None = None
    after: int = 0
    seen: int = 0  # rows of the remote
    empty: int = 0  # pages without rows
    counts: dict[str, int] = {}
    listed: list[dict[str, Any]] = []

    def count(self, what: str, number: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + number

    def tell(self, **told: Any) -> None:
        if len(self.listed) < _MOST_LISTED:
            self.listed.append(told)


@stateful
async def sync(call: RoutedCall) -> Effects:
    """Answer SYNC /. What fits into one page is done at once, anything else by a job."""
    given, owner, store = call.input, call.agent_id or "", call.server.store
    assert store is not None, "the handler is stateful"
    collection, _, key = given["resource"].partition("/")
    if any(one.kind != "resources" for one in await list_collections(call, collection)):
        message = f"{collection[:80]!r} is a data set or an entity type of this service, which SYNC cannot write."
        raise refusal(SYNC, "name-taken", message, field="/resource")
    name, there = find_remote(call, given["remote"], collection)
    direction, policy = given.get("direction", "pull"), given.get("conflict_policy", "remote_wins")
    sync_id = digest_of([owner, collection, name, there])
    plan = _Plan(
        *(sync_id, new_id("run"), given["resource"], collection, key or None, name, there, direction, policy),
        given.get("key", _KEY),
    )
    known = [decode_job(one.data) for one in await store.read(ListRecords(JOB, owner, (QUEUED, RUNNING)))]
    running = next((one for one in known if one.given.get("sync_id") == sync_id), None)
    if running is not None:
        message = f"{running.job_id} synchronizes it now."
        raise refusal(SYNC, "sync-running", message, field="/resource", job_id=running.job_id)
    local = await store.read(ListResources(collection, (owner,), 0, PAGE + 1))
    if direction == "push" and not local:
        raise refusal(SYNC, "resource-not-found", f"This agent has no resource {given['resource'][:80]!r}.")
    job = Job(sync_id, "SYNC", "", Authority.of(call.principal, call.request), msgspec.to_builtins(plan))
    work = _Work(call, job, at_once=True)
    first = None if key else await work.remote.scan(None)
    if len(local) > PAGE or (first is not None and first[1] is not None):
        told = {name: getattr(plan, name) for name in ("sync_id", "resource", "remote", "direction")}
        return await begin(call, job.given, told=told)
    commands: list[Command] = []
    result: dict[str, Any] | None = None
    async with aclosing(work.steps()) as steps:
        async for step in steps:
            commands += step.commands
            result = step.progress(()).result
    receipt = result or {}
    changed = SYNC.refuse("sync-running", "A row has changed while it was synchronized; repeat the call.")
    return effects(commands, lambda _: receipt, {"": changed})


async def carry_sync(call: RoutedCall, job: Job) -> Steps:
    """Do the job of a SYNC from its checkpoint on. A page of which a local row has changed meanwhile is read again."""
    for _ in range(_MOST_CHANGES):
        try:
            async with aclosing(_Work(call, job).steps()) as steps:
                async for step in steps:
                    yield step
                    job = msgspec.structs.replace(job, checkpoint=step.progress(()).checkpoint)
            return
        except StepConflictError:
            continue
    raise refusal(SYNC, "sync-running", "The rows are changed again and again while they are synchronized.")


class _Row(NamedTuple):
    key: str
    ours: str | None  # digest of the local row; None if there is none
    theirs: str | None
    agreed: str | None
    version: int  # of the local row; 0 if there is none


class _Work:
    def __init__(self, call: RoutedCall, job: Job, *, at_once: bool = False) -> None:
        assert call.server.store is not None
        self._keeps = at_once  # True if nothing is committed before the end
        self._call, self._store, self._owner = call, call.server.store, call.agent_id or ""
        self._plan = plan = msgspec.convert(job.given, _Plan)
        self._at = msgspec.convert(job.checkpoint, _Place) if job.checkpoint else _Place()
        remotes = call.server.part("remotes") or {}
        find_remote(call, plan.remote, "")  # it, or the scopes of the caller, may have been removed meanwhile
        self._met = set[str]()  # keys of what is not committed yet
        self.remote = RemoteCollection(remotes[plan.remote], plan.remote_collection)

    async def steps(self) -> Steps:
        """Align what the remote shows, then what it does not show."""
        at = self._at
        while at.phase == "remote":
            rows = await self._read_remote()
            accepted, rejected = check_rows(rows, self._plan.member)
            for one in rejected:
                at.count("skipped")
                at.tell(row=at.seen - len(rows) + one["row"], reason=f"at the remote, {one['reason']}")
            shown = {one.key or "": one.data for one in accepted}
            if len(shown) < len(accepted) or (self._plan.key is not None and shown.keys() - {self._plan.key}):
                raise contradiction("a key twice, or another one than was asked for")
            yield self._step(await self._align(shown, remote=True))
        if not at.seen and await self._store.read(HasAgreed(self._plan.sync_id)) and self._plan.key is None:
            raise contradiction("no rows at all, although there were some the last time")
        while at.phase == "local":
            yield self._step(await self._align(await self._read_local(), remote=False))
        forget = () if self._plan.key is not None else (ForgetAgreed(self._plan.sync_id, self._plan.run),)
        receipt = {name: getattr(self._plan, name) for name in ("sync_id", "resource", "remote", "direction")}
        receipt |= {**dict.fromkeys(_COUNTED, 0), **at.counts, "listed": at.listed, "status": "completed"}
        receipt["watermark"] = write_instant(time.time())
        yield self._step(forget, receipt)

    def _step(self, commands: Sequence[Command], result: dict[str, Any] | None = None) -> Step:
        progress = Progress(msgspec.to_builtins(self._at), self._at.seen, counts=dict(self._at.counts), result=result)
        return Step(lambda _: progress, tuple(commands))

    async def _read_remote(self) -> list[dict[str, Any]]:
        """Return the next rows of the remote, without what only identifies them there."""
        at, page = self._at, None
        if self._plan.key is not None:
            row = await self.remote.fetch(self._plan.key)
            rows, at.cursor = ([] if row is None else [row]), None
        else:
            page = await self.remote.scan(at.cursor)
            if page is None and (
                at.cursor or self._plan.direction == "pull" or await self._store.read(HasAgreed(self._plan.sync_id))
            ):
                message = f"The remote {self._plan.remote} shows no collection {self._plan.remote_collection[:80]!r}."
                raise refusal(SYNC, "remote-not-found", message, field="/remote")
            rows, at.cursor = page or ([], None)
        at.seen, at.empty = at.seen + len(rows), 0 if rows else at.empty + 1
        if at.seen > MOST_RESOURCES or at.empty > _EMPTY_PAGES:
            raise contradiction(f"more than {MOST_RESOURCES:,} rows, or {_EMPTY_PAGES} pages without any")
        at.phase = "remote" if at.cursor is not None else "local"
        return [{name: value for name, value in row.items() if name != "resource_id"} for row in rows]

    async def _read_local(self) -> dict[str, None]:
        """Return the keys of the next local rows, which the remote may not have shown."""
        if self._plan.key is not None:
            self._at.phase = "end"
            return {self._plan.key: None}
        found = await self._store.read(ListResources(self._plan.collection, (self._owner,), self._at.after, PAGE))
        self._at.phase = "local" if len(found) == PAGE else "end"
        self._at.after = found[-1].position if found else self._at.after
        return {one.key: None for one in found if one.key is not None}

    async def _read_again(self, key: str) -> str | None:
        """Return a row of the remote that has changed since it was compared; None if there is none any more."""
        row = await self.remote.fetch(key)
        accepted, _ = check_rows([] if row is None else [row], self._plan.member)
        if [one.key for one in accepted] != ([] if row is None else [key]):
            raise contradiction("another row than was asked for")
        return accepted[0].data if accepted else None

    async def _align(self, theirs: Mapping[str, str | None], *, remote: bool) -> list[Command]:
        """Compare rows by their keys, push what is to be pushed, and return the commands for the rest."""
        plan, keys = self._plan, tuple(theirs)
        agreed = await self._store.read(FindAgreed(plan.sync_id, keys))
        met = [key for key in keys if key in self._met or (key in agreed and agreed[key].run == plan.run)]
        if remote and met:
            raise contradiction(f"the key {met[0][:80]!r} twice")
        ours = await self._store.read(FindKeys(plan.collection, self._owner, keys))
        pulled: list[NewRow] = []
        removed: list[int] = []
        noted: dict[str, tuple[str, str, int]] = {}
        waiting = {key: theirs[key] for key in keys if key not in met}
        for attempt in range(_MOST_CHANGES):
            pushed: dict[str, Any] = {}
            compared: dict[str, str | None] = {}
            for key, text in waiting.items():
                local = ours.get(key)
                content = None if local is None else msgspec.json.decode(local.data)
                row = _Row(
                    key,
                    None if content is None else digest_of(content),
                    None if text is None else digest_of(msgspec.json.decode(text)),
                    agreed[key].digest or None if key in agreed else None,
                    0 if local is None else local.version,
                )
                what = self._decide(row, content)
                self._at.count({"remove": "deleted", "pull": "pulled", "push": "pushed"}.get(what, what))
                digest = row.theirs if what in ("pull", "agreed") else row.ours if what == "push" else row.agreed
                noted[key] = (key, digest or "", row.version)
                if what == "pull" and text is not None:
                    pulled.append(NewRow(key, text))
                elif what == "push":
                    pushed[key], compared[key] = content, row.theirs
                elif what == "remove" and local is not None:
                    removed.append(local.position)
                    noted[key] = (key, "", row.version)
            waiting = {}
            for key, reason in await self.remote.put(pushed, plan.member, compared):
                noted[key] = (key, agreed[key].digest if key in agreed else "", noted[key][2])
                self._at.count("pushed", -1)
                if reason is None and attempt < _MOST_CHANGES - 1:
                    waiting[key] = await self._read_again(key)
                else:
                    self._skip(key, reason or "it is changed at the remote again and again")
        if pulled and await self._store.read(CountOwned(self._owner, MOST_RESOURCES)) + len(pulled) > MOST_RESOURCES:
            raise refusal(SYNC, "too-many-resources", f"The agent may have {MOST_RESOURCES:,} resources.")
        self._met = {*(self._met if self._keeps else ()), *noted}
        note = NoteAgreed(plan.sync_id, plan.collection, self._owner, plan.run, tuple(noted.values()))
        gone = [RemoveLinked(RemoveResources(self._owner, plan.collection, 1, position)) for position in removed]
        put = PutResources(plan.collection, self._owner, tuple(pulled), "overwrite")
        return [note, *([put] if pulled else []), *gone]

    def _decide(self, row: _Row, content: Any) -> str:
        """Return what becomes of a row: agreed, pull, push, remove, conflicts or skipped."""
        plan = self._plan
        if row.ours == row.theirs:
            return "agreed"
        winner = "remote" if row.ours == row.agreed else "local"
        if row.agreed not in (row.ours, row.theirs):
            winner = plan.policy.partition("_")[0]
            self._at.count("conflicts", int(winner != "manual"))
            self._at.tell(key=row.key, reason="both sides have changed it", resolution=plan.policy)
            if winner == "manual":
                return "conflicts"
        if winner == "remote":
            if plan.direction == "push":
                return self._skip(row.key, "only the remote has changed it", counted=False)
            return "remove" if row.theirs is None else "pull"
        if plan.direction == "pull":
            return self._skip(row.key, "only this side has changed it", counted=False)
        if row.ours is None:
            return self._skip(row.key, "it was removed here, and cannot be removed at the remote", counted=False)
        if not isinstance(content, dict) or str(content.get(plan.member)) != row.key:
            return self._skip(row.key, f"its key is not its member {plan.member!r}", counted=False)
        return "push"

    def _skip(self, key: str, reason: str, *, counted: bool = True) -> str:
        self._at.tell(key=key, reason=reason)
        self._at.count("skipped", int(counted))
        return "skipped"
