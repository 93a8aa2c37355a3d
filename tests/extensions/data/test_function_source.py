""""""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from threading import Event
from typing import Any

import msgspec
import pytest
from tests.extensions.data.ledger import COLUMNS, TYPES, opened, reader

from bespeak.contract.data_set import DataSet
from bespeak.extensions.data.endpoints import OpenedData
from bespeak.extensions.data.query import DataQuery
from bespeak.extensions.data.sources import run_interruptible
from bespeak.protocol.exchange.refusal import Refused

pytestmark = pytest.mark.anyio


@dataclass
class Booking:
    id: int
    account: str


class Other(msgspec.Struct):
    id: int
    account: str


def plain() -> list[dict[str, Any]]:
    return [{"id": 2, "account": "b"}, {"id": 1, "account": "a", "unknown": 5}]


def objects(query: DataQuery) -> tuple[Any, ...]:
    assert query.limit == 101
    return Booking(2, "b"), Other(1, "a")


def generated() -> Iterator[Any]:
    yield from plain()


async def waited(query: DataQuery) -> list[Any]:
    return plain()


async def streamed() -> AsyncIterator[Any]:
    for row in plain():
        yield row


@pytest.mark.parametrize("function", [plain, objects, generated, waited, streamed])
async def test_functions_of_every_form_give_rows(function: Any) -> None:
    data = DataSet(name="rows", sensitivity="low", target=function, columns=COLUMNS, key=("id",))
    assert await reader(opened(data))() == {"rows": [{"id": 1, "account": "a"}, {"id": 2, "account": "b"}]}


async def test_endless_rows_are_given_up(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.data.sources.MOST_SCANNED", 1000)

    def endless() -> Iterator[Any]:
        while True:
            yield {"id": 1}

    async def endless_later() -> AsyncIterator[Any]:
        while True:
            yield {"id": 1}

    for function in (endless, endless_later):
        data = DataSet(name="endless", sensitivity="low", target=function, columns=COLUMNS)
        refused = await reader(opened(data))()
        assert isinstance(refused, Refused)
        assert refused.status == 503
        assert "more than 1,000 rows; it should use the filters" in caplog.text


async def test_row_that_is_not_an_object_is_an_error_of_the_source(caplog: pytest.LogCaptureFixture) -> None:
    data = DataSet(name="odd", sensitivity="low", target=lambda: [1], columns=COLUMNS)
    assert isinstance(await reader(opened(data))(), Refused)
    assert "a row of type int" in caplog.text


async def test_result_is_that_of_the_function() -> None:
    def add(one: int, other: int, cancellable: Any) -> int:
        with cancellable(lambda: None):
            return one + other

    assert await run_interruptible(add, 1, 2) == 3


async def test_cancelling_ends_the_block() -> None:
    loop, began, stopped = asyncio.get_running_loop(), asyncio.Event(), Event()

    def wait(cancellable: Any) -> None:
        with cancellable(stopped.set):
            loop.call_soon_threadsafe(began.set)
            assert stopped.wait(10)

    task = asyncio.create_task(run_interruptible(wait))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped.is_set()


async def test_block_that_was_left_is_not_interrupted() -> None:
    loop, left, go_on, interrupted = asyncio.get_running_loop(), asyncio.Event(), Event(), Event()

    def run(cancellable: Any) -> None:
        with cancellable(interrupted.set):
            pass
        loop.call_soon_threadsafe(left.set)
        go_on.wait(10)

    task = asyncio.create_task(run_interruptible(run))
    await left.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    assert not interrupted.is_set()


async def test_every_source_tells_the_types_of_its_columns(open_ledger: Callable[..., OpenedData]) -> None:
    described = open_ledger().source.describe()
    assert {column.name: column.kind for column in described.columns} == TYPES
    assert described.key in ((), ("id",))


async def test_columns_that_lack_values_are_published_as_such(
    open_ledger: Callable[..., OpenedData], kind: str
) -> None:
    row = open_ledger().endpoint.output_schema["properties"]["rows"]["items"]["properties"]
    lacking = {name for name, schema in row.items() if "null" in schema["type"]}
    # A table says which columns may be null, a file which are, and a function what is declared.
    tables = {"amount", "booked", "changed_at", "memo", "pending"}
    files = {"amount", "memo", "pending"}
    assert lacking == (set() if kind in ("function", "async") else tables if kind in ("sqlite", "postgres") else files)
