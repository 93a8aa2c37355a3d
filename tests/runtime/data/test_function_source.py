from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from tests.runtime.data.ledger import COLUMNS, opened, reader

from bespeak.contract.data_set import DataSet
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.data.query import DataQuery

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
    monkeypatch.setattr("bespeak.runtime.data.sources.MOST_SCANNED", 1000)

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
