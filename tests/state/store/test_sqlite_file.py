"""Faults of a file: refused at the start or reported at run time, with advice."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import threading
from pathlib import Path

import pytest
from tests.state.store.process import open_folder, run, running

from bespeak.errors import ConfigError
from bespeak.state.store.settings import open_store
from bespeak.state.store.sql import CURRENT
from bespeak.state.store.sqlite_file import (
    FileLock,
    connect,
    damage_of,
    explain,
    is_outage,
    migrate,
    open_writer,
    version_of,
)

OPEN = """
try:
    store = open_store(sys.argv[1], role="sole")
except ConfigError as error:
    print(error)
else:
    asyncio.run(store.close()); print("opened")
"""


def make(path: Path, rows: int = 0) -> Path:
    connection = open_writer(str(path), "process")
    for number in range(rows):
        connection.execute("INSERT INTO nonces VALUES ('k', ?, 0)", (f"{number:06}" + "x" * 200,))
    connection.close()
    return path


@pytest.mark.requirement("CORE-10.1-11")
def test_new_file_has_tables_a_wal_and_owner_permissions(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    connection = open_writer(str(path), "full")
    try:
        assert path.stat().st_mode & 0o777 == 0o600
        assert (tmp_path / "s.db-wal").stat().st_mode & 0o777 == 0o600
        assert version_of("", connection) == CURRENT
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert damage_of(connection) == []
    finally:
        connection.close()


@pytest.mark.parametrize(("durability", "synchronous"), [("full", 2), ("process", 1)])
def test_durability_decides_what_a_commit_waits_for(tmp_path: Path, durability: str, synchronous: int) -> None:
    connection = open_writer(str(tmp_path / "s.db"), durability)
    try:
        assert connection.execute("PRAGMA synchronous").fetchone() == (synchronous,)
    finally:
        connection.close()


def test_existing_empty_file_is_used_and_a_missing_folder_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.touch()
    open_writer(str(path), "full").close()
    assert path.stat().st_size > 0
    assert f"the folder {tmp_path / 'none'} does not exist" in refusal(tmp_path / "none" / "s.db")


def test_existing_file_keeps_its_rows(tmp_path: Path) -> None:
    connection = open_writer(str(make(tmp_path / "s.db", rows=3)), "full")
    try:
        assert migrate("", connection) == CURRENT
        assert connection.execute("SELECT count(*) FROM nonces").fetchone() == (3,)
    finally:
        connection.close()


def refusal(path: Path) -> str:
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(ConfigError) as caught:
        open_store(str(path), role="sole")
    assert (path.read_bytes() if path.is_file() else b"") == before, "a file that is refused stays as it is"
    # A lock that was left held would keep the next attempt out, with other words.
    with pytest.raises(ConfigError) as again:
        open_store(str(path), role="sole")
    assert str(again.value) == str(caught.value)
    return str(caught.value)


def test_a_folder_in_the_place_of_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "s.db").mkdir()
    assert "which is a folder" in refusal(tmp_path / "s.db")
    assert not (tmp_path / "s.db.lock").exists()


def test_special_file_is_refused_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "s.db")
    assert "not a regular file" in refusal(tmp_path / "s.db")


@pytest.mark.parametrize("content", [b"SQLite format 3 it is not" * 300, b"\0" * 5000, b"x", b"-- a text\n" * 1000])
def test_file_that_is_not_a_database_is_refused_and_left_unchanged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.db"
    path.write_bytes(content)
    assert "is not an SQLite database" in refusal(path)


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "s.db", rows=500)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert "is damaged" in refusal(path)


def test_a_damaged_page_in_the_middle_is_found_at_the_start(tmp_path: Path) -> None:
    path = damage(make(tmp_path / "s.db", rows=500))
    text = refusal(path)
    assert "is damaged" in text
    assert "bespeak store check" in text
    connection = connect(str(path), readonly=True)
    try:
        assert damage_of(connection)
    finally:
        connection.close()


def damage(path: Path) -> Path:
    """Overwrite the pages of the rows."""
    content = bytearray(path.read_bytes())
    places = [at for at in range(0, len(content), 4096) if b"xxxxxxxx" in content[at : at + 4096]]
    for at in places[3:-3]:
        content[at : at + 4096] = b"\xa5" * 4096
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("version", [0, 1])
def test_foreign_database_is_refused_and_left_unchanged(tmp_path: Path, version: int) -> None:
    path = tmp_path / "s.db"
    connection = sqlite3.connect(path)
    connection.executescript(f"CREATE TABLE orders (id); PRAGMA user_version = {version}")
    connection.close()
    assert "an SQLite database of another application" in refusal(path)


def test_tables_of_a_newer_release_are_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "s.db")
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {CURRENT + 1}")
    connection.close()
    assert f"newer bespeak (tables of version {CURRENT + 1}; this one knows {CURRENT})" in refusal(path)


@pytest.mark.parametrize("place", ["a\0b", "x" * 5000])
def test_invalid_file_name_is_refused(place: str) -> None:
    with pytest.raises(ConfigError, match="cannot be"):
        open_store(place)


@pytest.mark.process
def test_a_read_only_file_is_refused_at_the_start() -> None:
    with open_folder() as folder:
        path = make(folder / "s.db")
        path.chmod(0o444)
        done = run(OPEN, path, unprivileged=True)
        assert f"The store {path} cannot be used: this process may not write to it" in done.stdout, done.stderr


@pytest.mark.process
def test_a_file_in_a_read_only_folder_is_refused_at_the_start() -> None:
    with open_folder() as folder:
        path = make(folder / "s.db")
        path.chmod(0o666)
        (folder / "s.db.lock").touch(0o666)
        (folder / "s.db.lock").chmod(0o666)
        folder.chmod(0o555)
        done = run(OPEN, path, unprivileged=True)
        assert f"may not write to its folder {folder}" in done.stdout, done.stderr


@pytest.mark.process
def test_a_new_file_in_a_read_only_folder_is_refused_at_the_start() -> None:
    with open_folder() as folder:
        folder.chmod(0o555)
        done = run(OPEN, folder / "s.db", unprivileged=True)
        assert "Permission denied" in done.stdout, done.stderr
        assert "--store" in done.stdout


@pytest.mark.process
def test_new_file_on_a_full_disk_is_refused_at_the_start(tmp_path: Path) -> None:
    code = "resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))\n" + OPEN
    done = run(code, tmp_path / "s.db")
    assert "could not be read or written" in done.stdout, done.stderr


@pytest.mark.process
def test_full_disk_is_refused_at_the_start(tmp_path: Path) -> None:
    path = make(tmp_path / "s.db")
    code = "resource.setrlimit(resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))\n" + OPEN
    done = run(code, path)
    assert "could not be read or written" in done.stdout, done.stderr


def test_several_processes_may_migrate_one_file_at_once(tmp_path: Path) -> None:
    wrong: list[BaseException] = []

    def start() -> None:
        try:
            make(tmp_path / "s.db")
        except BaseException as error:  # noqa: BLE001 - shown below
            wrong.append(error)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_migration_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.db"
    monkeypatch.setattr("bespeak.state.store.sql.migrations", lambda: (("CREATE TABLE a (b)", "CREATE TABLE a (c)"),))
    with pytest.raises(ConfigError, match="already exists"):
        open_writer(str(path), "full")
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT * FROM sqlite_master").fetchall() == []
    connection.close()


@pytest.mark.parametrize("code", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_IOERR_WRITE])
def test_errors_of_the_machine_are_distinguished_from_those_of_a_statement(code: int) -> None:
    error = sqlite3.OperationalError("what SQLite says")
    assert not is_outage(error)
    assert explain("s.db", error) == "The store s.db cannot be used: what SQLite says."
    error.sqlite_errorcode = code
    assert is_outage(error)
    assert "what SQLite says" in explain("s.db", error)
    assert not is_outage(ValueError())


SERVE = """
store = open_store(sys.argv[1], role=sys.argv[2])
print("ready", flush=True)
sys.stdin.read()
"""
TAKEN = r"Another server uses the store .*s\.db\. Stop it, name another file with --store, or .* --workers"


@pytest.mark.process
def test_second_server_on_a_file_is_refused(tmp_path: Path) -> None:
    with running(SERVE, tmp_path / "s.db", "sole"):
        for role in ("sole", "shared"):
            with pytest.raises(ConfigError, match=TAKEN):
                open_store(str(tmp_path / "s.db"), role=role)  # type: ignore[arg-type]
        visitor = open_store(str(tmp_path / "s.db"))
        assert not visitor.sole
        asyncio.run(visitor.close())


@pytest.mark.process
def test_lock_is_released_when_the_server_dies(tmp_path: Path) -> None:
    with running(SERVE, tmp_path / "s.db", "sole") as process:
        process.send_signal(signal.SIGKILL)
        process.wait(20)
        store = open_store(str(tmp_path / "s.db"), role="sole")
        assert store.sole
        asyncio.run(store.close())


@pytest.mark.process
def test_processes_of_one_server_share_a_file(tmp_path: Path) -> None:
    with running(SERVE, tmp_path / "s.db", "shared"):
        store = open_store(str(tmp_path / "s.db"), role="shared")
        assert not store.sole
        asyncio.run(store.close())
        with pytest.raises(ConfigError, match=TAKEN):
            open_store(str(tmp_path / "s.db"), role="sole")


@pytest.mark.process
def test_a_link_to_a_file_shares_its_lock(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "s.db")
    with running(SERVE, tmp_path / "s.db", "sole"), pytest.raises(ConfigError, match=TAKEN):
        open_store(str(tmp_path / "link.db"), role="sole")


def test_a_lock_that_is_released_is_free_and_may_be_released_again(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "s.db.lock", exclusive=True)
    lock.release()
    lock.release()
    FileLock(tmp_path / "s.db.lock", exclusive=True).release()


@pytest.mark.process
def test_closing_a_store_releases_the_lock(tmp_path: Path) -> None:
    for _ in range(2):
        asyncio.run(open_store(str(tmp_path / "s.db"), role="sole").close())


@pytest.mark.process
def test_folder_without_room_for_a_lock_file_is_refused() -> None:
    code = """
try:
    sqlite_file.FileLock(pathlib.Path(sys.argv[1]), exclusive=True)
except ConfigError as error:
    print(error)
"""
    with open_folder() as folder:
        folder.chmod(0o555)
        done = run(code, folder / "s.db.lock", unprivileged=True)
        assert "cannot be written: Permission denied" in done.stdout, done.stderr


def test_file_system_without_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("bespeak.state.store.sqlite_file.fcntl.flock", refuse)
    with pytest.raises(ConfigError, match=r"has no locks \(No locks available\)"):
        FileLock(tmp_path / "s.db.lock", exclusive=True)
