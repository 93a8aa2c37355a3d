"""Examination of a store: it finds damage and changes nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.state.store.process import running

from bespeak.errors import ConfigError
from bespeak.state.store.commands.idempotency import UseNonce
from bespeak.state.store.settings import open_store
from bespeak.state.store.sql import CURRENT
from bespeak.state.store.transfer import examine, shapes, upgrade

pytestmark = pytest.mark.anyio


async def fill(place: str, rows: int = 3) -> None:
    store = open_store(place)
    await store.start()
    for number in range(rows):
        await store.do(UseNonce("k", f"{number:06}" + "x" * 200, -1 if number % 2 else 600))
    await store.close()


async def test_intact_store_is_described(shared_place: str) -> None:
    await fill(shared_place)
    found = await examine(shared_place)
    assert found.is_current
    assert found.damage == []
    assert found.size > 0
    assert (found.rows, found.expired["nonces"]) == (dict.fromkeys(shapes(), 0) | {"nonces": 3}, 1)
    assert await upgrade(shared_place) == CURRENT


async def test_examination_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await fill(str(path))
    before = path.read_bytes()
    await examine(str(path))
    assert path.read_bytes() == before


@pytest.mark.process
async def test_store_in_use_can_be_examined_without_change(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await fill(str(path))
    code = "store = open_store(sys.argv[1], role='sole'); print('ready', flush=True); sys.stdin.read()"
    with running(code, path):
        assert (await examine(str(path))).rows["nonces"] == 3
        with pytest.raises(ConfigError, match="Another server uses the store"):
            await upgrade(str(path))


async def test_damage_in_the_middle_is_found(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await fill(str(path), rows=500)
    content = bytearray(path.read_bytes())
    for at in range(0, len(content), 4096):
        if b"xxxxxxxx" in content[at : at + 4096]:
            content[at : at + 4096] = b"\xa5" * 4096
    path.write_bytes(content)
    found = await examine(str(path))
    assert found.damage
    assert "audit" in found.rows, "what can still be counted is counted"


@pytest.mark.parametrize("content", [b"no database" * 500, b"\xa5" * 8192])
async def test_file_that_is_not_a_database_is_damage(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.db"
    path.write_bytes(content)
    found = await examine(str(path))
    assert "is not an SQLite database" in found.damage[0]
    with pytest.raises(ConfigError, match="is not an SQLite database"):
        await upgrade(str(path))


async def test_missing_tables_have_version_0_and_are_made_by_an_upgrade(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.touch()
    found = await examine(str(path))
    assert (found.version, found.is_current, found.rows) == (0, False, {})
    assert await upgrade(str(path)) == 0
    assert (await examine(str(path))).is_current


async def test_an_empty_database_of_postgresql_is_made_by_an_upgrade(postgres_dsn: str) -> None:
    found = await examine(postgres_dsn)
    assert (found.version, found.size, found.rows) == (0, 0, {})
    assert await upgrade(postgres_dsn) == 0
    assert (await examine(postgres_dsn)).is_current


async def test_newer_tables_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await fill(str(path))
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {CURRENT + 1}")
    connection.close()
    for look in (examine, upgrade):
        with pytest.raises(ConfigError, match="newer bespeak"):
            await look(str(path))


async def test_missing_store_is_not_created(tmp_path: Path) -> None:
    for look in (examine, upgrade):
        with pytest.raises(ConfigError, match="There is no store at"):
            await look(str(tmp_path / "s.db"))
        with pytest.raises(ConfigError, match="exists only inside its process"):
            await look("memory")
        with pytest.raises(ConfigError, match="cannot be reached"):
            await look("postgresql://u:hunter2@127.0.0.1:1/n")
    assert list(tmp_path.iterdir()) == []
