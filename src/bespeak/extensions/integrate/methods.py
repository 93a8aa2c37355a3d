"""IMPORT: rows of another system become resources of a collection (Tier 2 6.4).

A small source is imported at once. A large one is kept in the store and imported by a job, in batches whose rows are
committed together with the place behind them.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from bespeak.contract.standard.definition import StandardMethod
from bespeak.contract.standard.integrate import MOST_SOURCE
from bespeak.contract.standard.methods import STANDARD
from bespeak.documents.data_formats import FormatError
from bespeak.documents.row_batches import BY_LINE, IN_BYTES, Mark, read_batches
from bespeak.documents.table_files import MissingLibraryError
from bespeak.extensions.acquire.store import AnalyzeResources, CountOwned, NewRow, PutCount, PutResources
from bespeak.extensions.data.collection import list_collections
from bespeak.extensions.integrate.jobs import (
    DropParts,
    Job,
    Progress,
    PutPart,
    ReadPart,
    Step,
    Steps,
    begin,
    new_job_id,
)
from bespeak.extensions.integrate.remote import check_address, fetch_source
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import RESPOND_ASYNC, prefers
from bespeak.protocol.exchange.instant import write_instant
from bespeak.runtime.answer import Effects
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.concurrency import run_in_thread
from bespeak.runtime.functions.files import PART as ENDING
from bespeak.runtime.functions.files import FileValue, create
from bespeak.runtime.handling import effects, invalid, new_id, refusal, stateful, to_json

MOST_RESOURCES: Final = 1_000_000  # resources of one agent
PART: Final = 1 << 20  # bytes of a source that are kept together, and the most that are imported at once
MOST_PUT: Final = 10_000  # rows that are put at once
_BATCH: Final = 2_000  # rows of one transaction of a job: other writers wait for it
MOST_ROW: Final = 64 * 1024  # bytes of a row
LONGEST_KEY: Final = 256
_MOST_SHOWN: Final = 100  # rejected rows of a receipt
_ADDRESS: Final = re.compile(r"https?://\S{1,2040}")
_DIGITS: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,2})?")
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_IMPORT: Final = STANDARD["IMPORT"]


class _Plan(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is imported, and how: what a job of IMPORT needs to know."""

    target: str
    format: str
    policy: str
    key: str | None = None
    columns: dict[str, str] = {}  # type of each column whose values must have one
    size: int = 0  # bytes of the source; 0 if they are at an address
    address: str | None = None


class _Counts(msgspec.Struct, frozen=True):
    """What became of rows. The first ones that were rejected are listed."""

    records: int = 0
    added: int = 0
    changed: int = 0
    skipped: int = 0
    rejected: tuple[dict[str, Any], ...] = ()
    rejected_count: int = 0

    def add(self, rows: _Rows, put: PutCount) -> _Counts:
        return _Counts(
            self.records + len(rows.accepted) + len(rows.rejected),
            self.added + put.added,
            self.changed + put.changed,
            self.skipped + put.skipped,
            (*self.rejected, *rows.rejected)[:_MOST_SHOWN],
            self.rejected_count + len(rows.rejected),
        )


class _State(msgspec.Struct, frozen=True):
    """Checkpoint of a job whose source is in the store."""

    size: int
    mark: Mark = Mark()
    counts: _Counts = _Counts()


class _Rows(msgspec.Struct, frozen=True):
    """Rows of a batch that can be imported, the others with their reasons, and the place behind them."""

    accepted: tuple[NewRow, ...]
    rejected: tuple[dict[str, Any], ...]
    after: Mark


@stateful
async def import_rows(call: RoutedCall) -> Effects:
    """Answer IMPORT /. Rows that cannot be imported are rejected one by one, with the reason."""
    given, target = call.input, call.input["target"]
    await check_target(call, _IMPORT, target, "target")
    source, form = given["source"], given.get("format")
    address = source if isinstance(source, str) and _ADDRESS.fullmatch(source) else None
    if isinstance(source, list) and form not in {None, "json"}:
        raise invalid("format", f"is {form}, which is a text; the source is rows, so leave it out.")
    if form is None and not isinstance(source, list):
        raise invalid("format", "is needed for a text, a file or an address; it is not guessed.")
    policy, expected = given.get("conflict_policy", "overwrite"), given.get("expected", {})
    plan = _Plan(target, form or "json", policy, given.get("key"), given.get("columns", {}), address=address)
    if address is not None:
        check_address(call, _IMPORT, address)
        return await _begin(call, plan, new_job_id(call.method))
    store = call.store
    with ExitStack() as stack:
        path, file = _open(stack, call.server.part("files").folder)
        size = await run_in_thread(_write, file, source)
        if size > MOST_SOURCE:
            raise invalid("source", f"must have at most {MOST_SOURCE >> 20} MiB; got {size >> 20}. Send it in parts.")
        if size <= PART and not prefers(call.request.headers, RESPOND_ASYNC):
            rows = await run_in_thread(_read_all, path, plan)
            if rows is not None:
                if not rows.accepted:
                    raise _nothing(rows.rejected)
                await check_room(call, _IMPORT, len(rows.accepted))
                counts, put = _Counts(), PutResources(target, call.agent_id or "", rows.accepted, policy, expected)

                def tell(done: Sequence[Any]) -> dict[str, Any]:
                    stale = {"stale": list(done[0].stale)} if expected else {}
                    return _receipt(new_id("import"), plan, counts.add(rows, done[0])) | stale

                return effects([put], tell, {})
        if expected:
            raise invalid("expected", "is for what is imported at once: at most 1 MiB and 10,000 rows.")
        job_id = new_job_id(call.method)
        with path.open("rb") as written:
            number = 0
            while part := await run_in_thread(written.read, PART):
                await store.do(PutPart(job_id, number, part))
                number += 1
    return await _begin(call, msgspec.structs.replace(plan, size=size), job_id)


async def _begin(call: RoutedCall, plan: _Plan, job_id: str) -> Effects:
    told = {"import_id": job_id, "target": plan.target}
    return await begin(call, msgspec.to_builtins(plan), job_id=job_id, total=plan.size or None, told=told)


def _receipt(import_id: str, plan: _Plan, counts: _Counts) -> dict[str, Any]:
    told = {"import_id": import_id, "target": plan.target, "status": "done"}
    return {**told, **msgspec.to_builtins(counts), "imported_at": write_instant(time.time())}


def _nothing(rejected: Sequence[Mapping[str, Any]]) -> Exception:
    reason = f": {rejected[0]['reason']}" if rejected else ""
    message = f"No row of the source can be imported{reason}."
    return refusal(_IMPORT, "nothing-to-import", message, field="/source", rejected=list(rejected[:_MOST_SHOWN]))


async def check_target(call: RoutedCall, method: StandardMethod, target: str, member: str) -> None:
    """Refuse a collection for resources whose name a data set or an entity type has."""
    if any(one.kind != "resources" for one in await list_collections(call, target)):
        message = f"{target!r} is the name of a data set or an entity type of this service; choose another name."
        raise refusal(method, "name-taken", message, field=f"/{member}")


async def check_room(call: RoutedCall, method: StandardMethod, more: int = 0) -> int:
    """Return how many resources the caller may still add; refuse it if these are fewer than `more`."""
    free: int = MOST_RESOURCES - await call.store.read(CountOwned(call.agent_id or "", MOST_RESOURCES))
    if more > free:
        raise refusal(method, "too-many-resources", f"The agent may have {MOST_RESOURCES:,} resources.")
    return free


async def carry_import(call: RoutedCall, job: Job) -> Steps:
    """Import the source of a job, from the batch on that is not committed yet."""
    plan, store = msgspec.convert(job.given, _Plan), call.store
    state = _State(plan.size)
    if job.checkpoint is not None:
        state = msgspec.convert(job.checkpoint, _State)
    elif plan.address is not None:
        size = number = 0
        yield Step(lambda _: Progress(None, 0), (DropParts(job.job_id),))  # parts of an attempt that was interrupted
        async with aclosing(fetch_source(call, _IMPORT, plan.address, PART, MOST_SOURCE)) as parts:
            async for part, total in parts:
                size += len(part)
                yield Step(partial(_note_fetched, size, total), (PutPart(job.job_id, number, part),))
                number += 1
        state = _State(size)
    free = await check_room(call, _IMPORT) + state.counts.added
    with ExitStack() as stack:
        path, file = _open(stack, call.server.part("files").folder)
        number = 0
        while (part := await store.read(ReadPart(job.job_id, number))) is not None:
            await run_in_thread(file.write, part)
            number += 1
        file.flush()
        batches = _read_rows(path, plan, _BATCH, state.mark)
        while (rows := await run_in_thread(next, batches, None)) is not None:
            if state.counts.added + len(rows.accepted) > free:
                await check_room(call, _IMPORT, len(rows.accepted))
            put = PutResources(plan.target, call.agent_id or "", rows.accepted, plan.policy)
            # After 4, 8, 16 and so on batches the database counts what is there.
            before = state.counts.records // _BATCH
            analyzes = before >= 4 and before & (before - 1) == 0
            noting = _Noting(plan, state, rows)
            yield Step(noting, (put, AnalyzeResources()) if analyzes else (put,))
            state = noting.following
    if state.counts.records == state.counts.rejected_count:
        raise _nothing(state.counts.rejected)
    ended = msgspec.structs.replace(_tell(plan, state), result=_receipt(job.job_id, plan, state.counts))
    yield Step(lambda _: ended)


class _Noting:
    """Notes a batch, from what became of its rows."""

    def __init__(self, plan: _Plan, state: _State, rows: _Rows) -> None:
        self._plan, self._state, self._rows = plan, state, rows
        self.following = state

    def __call__(self, results: Sequence[Any]) -> Progress:
        counts = self._state.counts.add(self._rows, results[0])
        self.following = msgspec.structs.replace(self._state, mark=self._rows.after, counts=counts)
        return _tell(self._plan, self.following)


def _note_fetched(size: int, total: int | None, _: Any) -> Progress:
    return Progress(None, size, total, {"fetched": size}, unit="bytes")


def _tell(plan: _Plan, state: _State) -> Progress:
    counted = msgspec.to_builtins(state.counts)
    done, total = (state.mark.offset, state.size) if plan.format in IN_BYTES else (state.counts.records, None)
    told = {**counted, "rejected": counted["rejected"][:3]}
    return Progress(msgspec.to_builtins(state), done, total, told, unit="rows" if total is None else "bytes")


def _open(stack: ExitStack, folder: Path) -> tuple[Path, IO[bytes]]:
    """Create a file that is there until the stack is closed: not in a thread, which outlives a cancelled call."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{secrets.token_hex(16)}{ENDING}"
    file = stack.enter_context(create(path))  # locked while it is open: other processes remove what nobody has locked
    stack.callback(path.unlink, missing_ok=True)
    return path, file


def _write(file: IO[bytes], source: Any) -> int:
    if isinstance(source, FileValue):
        for chunk in source.upload.chunks():
            file.write(chunk)
    else:
        file.write(source.encode() if isinstance(source, str) else msgspec.json.encode(source))
    file.flush()
    return file.tell()


def _read_all(path: Path, plan: _Plan) -> _Rows | None:
    """Return all rows of a small file; None if there are more than are imported at once."""
    accepted: tuple[NewRow, ...] = ()
    rejected: tuple[dict[str, Any], ...] = ()
    for batch in _read_rows(path, plan, MOST_PUT + 1, Mark()):
        accepted, rejected = accepted + batch.accepted, rejected + batch.rejected
        if len(accepted) + len(rejected) > MOST_PUT:
            return None
    return _Rows(accepted, rejected, Mark())


def _read_rows(path: Path, plan: _Plan, size: int, mark: Mark) -> Iterator[_Rows]:
    try:
        for batch in read_batches(path, plan.format, size, mark):
            yield _check_rows(batch.rows, plan, batch.after)
    except MissingLibraryError as error:
        raise refusal(status.NOT_IMPLEMENTED, "not-implemented", f"{plan.format} needs {error}.") from None
    except FormatError as error:
        where = {"line": error.line} if error.line else {}
        message = f"The source is not {plan.format} that can be read: {error}."
        raise refusal(_IMPORT, "invalid-source", message, field="/source", **where) from None


def check_rows(rows: Sequence[Any], key: str) -> tuple[Sequence[NewRow], Sequence[dict[str, Any]]]:
    """Return the rows of another system that can be kept, and the number of each other row with the reason."""
    found = _check_rows(list(enumerate(rows)), _Plan("", "json", "", key), Mark())
    return found.accepted, found.rejected


def _check_rows(rows: Sequence[tuple[int, Any]], plan: _Plan, after: Mark) -> _Rows:
    """Return what can be imported, and the place of each other row with the reason."""
    accepted: list[NewRow] = []
    rejected: list[dict[str, Any]] = []
    place, key = "line" if plan.format in BY_LINE else "row", plan.key
    for number, row in rows:
        fault = row.reason if isinstance(row, FormatError) else "" if isinstance(row, dict) else "it is not an object"
        if not fault and plan.columns:
            fault = _convert(row, plan.columns, plan.format)
        value = None if fault or key is None else row.get(key)
        text = "" if fault else to_json(row)
        if fault:
            pass
        elif "resource_id" in row:
            fault = "the member resource_id is the server's"
        elif len(text) > MOST_ROW:
            fault = f"it has more than {MOST_ROW // 1024} KiB"
        elif key is not None and (isinstance(value, bool) or not isinstance(value, str | int) or value == ""):
            fault = f"its key {key[:80]!r} is not a text or a whole number"
        elif len(str(value)) > LONGEST_KEY or "\0" in str(value):
            fault = f"its key has more than {LONGEST_KEY} characters, or a NUL"
        if fault:
            rejected.append({place: number, "reason": fault})
        else:
            accepted.append(NewRow(None if value is None else str(value), text))
    return _Rows(tuple(accepted), tuple(rejected), after)


def _convert(row: dict[str, Any], columns: Mapping[str, str], form: str) -> str:
    """Bring the cells of a row into the types of their columns; return what is wrong with one of them."""
    for name, kind in columns.items():
        value = row.get(name)
        if form == "csv" and isinstance(value, str) and kind != "string":
            row[name] = value = _read_cell(value, kind)
        if value is None or (isinstance(value, _KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))):
            continue
        return f"its column {name[:80]!r} is {str(value)[:40]!r}, which is not of the type {kind}"
    return ""


def _read_cell(text: str, kind: str) -> Any:
    """Return the value of a cell; the text itself if it is not one of this type."""
    if text == "":
        return None
    if kind == "boolean":
        return {"true": True, "false": False}.get(text.lower(), text)
    return msgspec.json.decode(text) if (_DIGITS if kind == "integer" else _NUMBER).fullmatch(text) else text
