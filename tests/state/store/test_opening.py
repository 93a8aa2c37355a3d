"""From what an operator writes to a store."""

from __future__ import annotations

import asyncio
import builtins
from pathlib import Path
from typing import Any

import pytest

from bespeak.errors import ConfigError
from bespeak.state.store.settings import open_store
from bespeak.state.store.sqlite import SqliteStore


def test_memory_is_a_store_of_one_process() -> None:
    store = open_store("memory", role="sole")
    assert isinstance(store, SqliteStore)
    assert store.sole
    asyncio.run(store.close())
    with pytest.raises(ConfigError, match="belongs to one process"):
        open_store("memory", role="shared")


@pytest.mark.parametrize("place", [":memory:", "data/:memory:"])
def test_sqlite_name_for_memory_is_not_a_file(place: str) -> None:
    with pytest.raises(ConfigError, match="Write `memory`"):
        open_store(place)


def test_path_is_resolved_at_opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("s.db", role="sole")
    monkeypatch.chdir("/")
    asyncio.run(store.close())
    assert (tmp_path / "s.db").is_file()


def test_role_of_a_process_decides_its_lock(tmp_path: Path) -> None:
    for role, sole in (("sole", True), ("shared", False), ("visitor", False)):
        store = open_store(str(tmp_path / "s.db"), role=role)  # type: ignore[arg-type]
        assert store.sole is sole
        asyncio.run(store.close())


def test_unknown_scheme_and_a_link_that_leads_to_itself_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"redis:// is not a supported store; give a path") as caught:
        open_store("redis://user:hunter2@host")
    assert "hunter2" not in str(caught.value)
    (tmp_path / "s.db").symlink_to(tmp_path / "s.db")
    with pytest.raises(ConfigError, match="cannot be"):
        open_store(str(tmp_path / "s.db"))


@pytest.mark.parametrize("place", ["postgresql://u@127.0.0.1:1/n", "postgres://u@127.0.0.1:1/n"])
def test_without_the_package_for_postgresql_it_is_named(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name == "bespeak.state.store.postgres":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ConfigError, match=r"pip install 'bespeak\[postgres\]'"):
        open_store(place)
