"""Stores that commands work on, and files written in one step."""

from __future__ import annotations

from pathlib import Path

import pytest

from bespeak.app.cli.target_store import existing_place, use_store, written_in_one_step
from bespeak.errors import ConfigError, StoreError
from bespeak.state.store.store import Store


def test_a_file_is_replaced_whole_and_is_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    with written_in_one_step(path) as write:
        write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
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


def test_a_folder_that_is_not_there_is_a_clear_refusal(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"), written_in_one_step(tmp_path / "no" / "out"):
        pass


def test_a_store_is_not_made_only_to_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no store"):
        existing_place(str(tmp_path / "bespeak.db"))
    assert existing_place("postgresql://host/name") == "postgresql://host/name"


@pytest.mark.anyio
async def test_what_is_wrong_with_a_store_is_said_without_a_trace(tmp_path: Path) -> None:
    async def fail(_: Store) -> None:
        raise StoreError("the disk is full")

    with pytest.raises(ConfigError, match="the disk is full"):
        await use_store(str(tmp_path / "bespeak.db"), fail)
