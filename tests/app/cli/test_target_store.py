"""Test opening stores for commands, and atomic file output."""

from __future__ import annotations

from pathlib import Path

import pytest

from bespeak.errors import ConfigError, StoreError
from bespeak.state.store.store import Store
from bespeak.terminal.target_store import existing_place, use_store, written_in_one_step


def test_file_is_replaced_atomically_with_owner_only_permissions(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    with written_in_one_step(path) as write:
        write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")

    def fail() -> None:
        with written_in_one_step(path) as write:
            write(b"half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_missing_folder_is_a_clear_error_and_a_store_is_not_created_for_reading(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"), written_in_one_step(tmp_path / "no" / "out"):
        pass
    with pytest.raises(ConfigError, match="no store"):
        existing_place(str(tmp_path / "bespeak.db"))
    assert existing_place("postgresql://host/name") == "postgresql://host/name"


@pytest.mark.anyio
async def test_store_error_is_reported_without_a_traceback(tmp_path: Path) -> None:
    async def fail(_: Store) -> None:
        raise StoreError("the disk is full")

    with pytest.raises(ConfigError, match="the disk is full"):
        await use_store(str(tmp_path / "bespeak.db"), fail)
