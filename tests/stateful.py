"""A small service with a store, in this process; for async tests."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from joserfc.jwk import OKPKey
from tests.service import AGENT, Bench, Reply, build

from bespeak.app.server.assembly import Keeper
from bespeak.contract.endpoint import Endpoint
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.protocol import status
from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.store.settings import Role, open_store
from bespeak.state.store.store import Command, Result, Store, read_one
from bespeak.terminal.target_store import use_store

_is_audited = False


@pytest.fixture(params=(False, True), ids=("plain", "audited"), name="anyio_backend")
def audited_backend(request: pytest.FixtureRequest) -> Iterator[tuple[str, dict[str, bool]]]:
    """Let `keeping` record every call, or none: each async test of the folder or module that imports this runs so.

    `diagonal` says in which of the two ways a test with several cases runs.
    """
    global _is_audited  # noqa: PLW0603 - `keeping` is a function that tests call, not a fixture
    _is_audited = request.param
    yield ("asyncio", {"use_uvloop": True})
    _is_audited = False


class Case(NamedTuple):
    """A case of a test that runs with and without records."""

    test: object
    others: frozenset[tuple[str, int]]
    """What distinguishes it from other cases of the test, beside the records."""
    is_audited: bool
    store: str | None


def diagonal(items: Sequence[pytest.Item], *, both: bool = True) -> list[pytest.Item]:
    """Leave out cases that show again what others show; without `both`, a single case is recorded only."""
    cases = [_read(item) for item in items]
    kept = once_each([case for case in cases if case is not None], both=both)
    return [item for item, case in zip(items, cases, strict=True) if case is None or case in kept]


def once_each(cases: Sequence[Case], *, both: bool = True) -> set[Case]:
    """Choose cases so that each runs once, recorded or not.

    On PostgreSQL calls are recorded, in a file they are not. Without a choice of stores every second case is recorded,
    and a test with one case runs both ways if `both` is True.
    """
    found: dict[object, dict[frozenset[tuple[str, int]], int]] = {}
    for case in cases:
        numbers = found.setdefault(case.test, {})
        numbers.setdefault(case.others, len(numbers))

    def is_kept(case: Case) -> bool:
        numbers = found[case.test]
        if case.store is not None:
            return case.is_audited == (case.store == "postgres")
        if len(numbers) == 1:
            return both or case.is_audited
        return case.is_audited == bool(numbers[case.others] % 2)

    return {case for case in cases if is_kept(case)}


def _read(item: pytest.Item) -> Case | None:
    params: dict[str, object] = getattr(getattr(item, "callspec", None), "params", {})
    is_audited = params.get("anyio_backend")
    if not isinstance(item, pytest.Function) or not isinstance(is_audited, bool):
        return None
    others = frozenset((name, index) for name, index in item.callspec.indices.items() if name != "anyio_backend")
    store = next((str(params[name]) for name in ("place", "shared_place") if name in params), None)
    return Case((item.parent, item.originalname), others, is_audited, store)


class StatefulBench:
    """Sends requests to a service whose answers wait for its store."""

    def __init__(self, bench: Bench, store: Store) -> None:
        self.bench = bench
        self.store = store
        self.connection = Connection(address="127.0.0.1")

    async def send(
        self, method: str, target: str = "/", body: Any = None, *, agent: str | None = AGENT, **headers: str
    ) -> Reply:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if agent is not None:
            given.setdefault("agent-id", agent)
        path, _, query = target.partition("?")
        raw = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        answer = self.bench.dispatcher(Request(method, path, query, given, raw, self.connection))
        if inspect.iscoroutine(answer):
            answer = await answer
        assert isinstance(answer, Response)
        reply = Reply(answer)
        self._check_promise(method, path, reply)
        return reply

    def _check_promise(self, method: str, path: str, reply: Reply) -> None:
        """Check that the success of a built-in method is what its published schema promises, and has nothing else."""
        route = self.bench.routes.steps.get((method, path))
        if route is None or not route.builtin or not status.is_success(reply.status):
            return
        assert route.output.violations(reply.json) == [], (method, path)
        known = route.endpoint.output_schema.get("properties", {}).get("result", {}).get("properties")
        if known is not None:
            assert not reply.json["result"].keys() - known.keys(), (
                method,
                path,
                reply.json["result"].keys() - known.keys(),
            )


@asynccontextmanager
async def keeping(
    *endpoints: Endpoint,
    store: Store | None = None,
    document: ServerDocument | None = None,
    keys: tuple[OKPKey, ...] = (),
    **fields: Any,
) -> AsyncIterator[StatefulBench]:
    """Assemble a service of these endpoints with a store: the given one, which stays open, or a new one in memory."""
    document = document or ServerDocument()
    bench = build(*endpoints, tables=document.extension_tables, **fields)
    kept = store or open_store("memory", role="sole")
    if _is_audited and document.audit == AuditSettings():
        document = replace(document, audit=AuditSettings(records="all"))
    keeper = Keeper(bench.assembled, kept, document, keys)
    await keeper.start()
    try:
        yield StatefulBench(Bench(bench.assembled, keeper.dispatcher), kept)
    finally:
        await keeper.stop()


class Delegation(msgspec.Struct, frozen=True):
    delegator: str
    delegate: str
    scope: str
    parent: str | None
    task: str | None
    expires: float


class ReadDelegation(Command, frozen=True):
    """Read a recorded delegation, as an operator does with SQL."""

    delegation_id: str

    def steps(self) -> Result[Delegation | None]:
        columns = ", ".join(Delegation.__struct_fields__)
        return read_one(Delegation, f"SELECT {columns} FROM delegations WHERE delegation_id = ?", self.delegation_id)


def do_at(place: Path, *commands: Command, role: Role = "visitor") -> Any:
    """Carry out commands at the store of a deployment, outside of an event loop."""
    return asyncio.run(use_store(str(place), lambda store: store.do(*commands), role=role))
