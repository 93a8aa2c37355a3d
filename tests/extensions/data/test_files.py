""""""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.extensions.data.ledger import ROWS, opened, reader, write_file

from bespeak.contract.data_set import DataSet
from bespeak.errors import DataSourceError
from bespeak.extensions.data.files import FileSource
from bespeak.protocol.exchange.refusal import Refused

pytestmark = pytest.mark.anyio


def make(path: Path, **more: Any) -> DataSet:
    return DataSet(name="file", sensitivity="low", file=path, **more)


async def test_name_of_the_file_is_data(tmp_path: Path) -> None:
    folder = tmp_path / "it's; DROP"
    folder.mkdir()
    page = await reader(opened(make(write_file(folder / "l'edger.csv", ROWS), key=("id",))))(id=1)
    assert not isinstance(page, Refused)
    assert len(page["rows"]) == 1


async def test_nothing_but_the_file_can_be_opened(tmp_path: Path) -> None:
    source = FileSource(write_file(tmp_path / "ledger.csv", ROWS))
    other = write_file(tmp_path / "other.csv", ROWS)
    source.describe()
    database = source._open()
    for statement in (
        f"SELECT * FROM read_csv('{other}')",
        "SELECT * FROM read_text('/etc/passwd')",
        f"SELECT * FROM glob('{tmp_path}/*')",
        f"COPY (SELECT 1) TO '{tmp_path}/new.csv'",
        f"ATTACH '{tmp_path}/new.db'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SET allowed_paths = ['/etc/passwd']",
    ):
        with pytest.raises(duckdb.Error):
            database.execute(statement)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger.csv", "other.csv"]
    database.close()


async def test_changes_of_the_file_are_seen(tmp_path: Path) -> None:
    path = write_file(tmp_path / "ledger.jsonl", ROWS[:1])
    read = reader(opened(make(path, key=("id",))))
    write_file(path, ROWS[:3])
    page = await read()
    assert not isinstance(page, Refused)
    assert len(page["rows"]) == 3


async def test_file_that_goes_or_breaks_is_unavailable(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_file(tmp_path / "ledger.csv", ROWS)
    read = reader(opened(make(path, key=("id",))))
    path.write_text(path.read_text().replace("99999999.25", "many"))
    broken = await read()
    path.unlink()
    gone = await read()
    assert "ledger.csv does not exist" in caplog.text
    for refused in (broken, gone):
        assert isinstance(refused, Refused)
        assert refused.status == 503
        assert str(tmp_path) not in refused.message


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.csv", None, "No such file"),
        ("long.csv", b"x" * 2_000_001, "a line of more than"),
        ("broken.jsonl", b'{"a": 1}\n{"a":\n', "cannot be read"),
        ("broken.parquet", b"PAR1", "cannot be read"),
    ],
)
async def test_unusable_files_are_named(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataSourceError, match=message) as error:
        FileSource(tmp_path / name).describe()
    assert name in str(error.value)
    assert "\n" not in str(error.value)


async def test_tabs_separate_and_nested_values_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("id\tname\n1\ta,b\n")
    (tmp_path / "b.jsonl").write_text('{"id": 1, "tags": ["x"], "place": {"type": "Point", "coordinates": [1, 2]}}\n')
    assert await reader(opened(make(tmp_path / "a.tsv")))() == {"rows": [{"id": 1, "name": "a,b"}]}
    nested = {"id": 1, "tags": ["x"], "place": {"type": "Point", "coordinates": [1, 2]}}
    assert await reader(opened(make(tmp_path / "b.jsonl")))() == {"rows": [nested]}


async def test_not_a_number_counts_as_no_value(tmp_path: Path) -> None:
    path = tmp_path / "n.parquet"
    duckdb.sql(
        f"COPY (SELECT * FROM (VALUES (1, 'NaN'::DOUBLE), (2, 1.5), (3, 'Infinity')) AS v(id, x)) "
        f"TO '{path}' (FORMAT parquet)"
    )
    read = reader(opened(make(path, key=("id",))))
    assert await read(order="-x") == {"rows": [{"id": 2, "x": 1.5}, {"id": 1}, {"id": 3}]}
    assert await read(x_min=0) == {"rows": [{"id": 2, "x": 1.5}]}
