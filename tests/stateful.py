"""A small service with a store, in this process; for async tests."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from joserfc.jwk import OKPKey
from tests.service import AGENT, Bench, Reply, build

from bespeak.app.server.assembly import Keeper
from bespeak.contract.endpoint import Endpoint
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.store.settings import Role, open_store
from bespeak.state.store.store import Command, Result, Store, read_one
from bespeak.terminal.target_store import use_store

_is_audited = False


@pytest.fixture(params=(False, True), ids=("plain", "audited"), name="anyio_backend")
def audited_backend(request: pytest.FixtureRequest) -> Iterator[tuple[str, dict[str, bool]]]:
    """Run each async test of the folder or module that imports this twice: `keeping` records every call, or none."""
    global _is_audited  # noqa: PLW0603 - `keeping` is a function that tests call, not a fixture
    _is_audited = request.param
    yield ("asyncio", {"use_uvloop": True})
    _is_audited = False


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
        return Reply(answer)


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
