"""Which processes may serve from one file."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from tests.state.store.process import open_folder, run, running

from bespeak.errors import ConfigError
from bespeak.state.store.opening import open_store
from bespeak.state.store.sqlite_file import FileLock

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
