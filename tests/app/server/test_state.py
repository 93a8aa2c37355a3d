"""The location of a deployment's state, found without running its code."""

from __future__ import annotations

from pathlib import Path

import pytest

from bespeak.app.server.state import names_attribute, store_place
from bespeak.errors import ConfigError, ContractError

BROKEN = "raise SystemExit('the code of the operator was imported')\n"


def deployment(folder: Path, configuration: str = "", *, name: str = "bespeak.toml") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(configuration)
    (folder / "app.py").write_text(BROKEN)
    (folder / "endpoints").mkdir(exist_ok=True)
    (folder / "endpoints" / "wrong.toml").write_text("[endpoint]\nmethod = 1\n")
    return folder


def test_the_command_line_takes_precedence(tmp_path: Path) -> None:
    folder = deployment(tmp_path, '[store]\nplace = "s.db"\n')
    assert store_place(str(folder), "other.db") == "other.db"
    assert store_place("nothing there", "memory") == "memory"


def test_the_configuration_overrides_the_default_and_its_paths_are_relative_to_it(tmp_path: Path) -> None:
    folder = deployment(tmp_path, '[store]\nplace = "state/s.db"\ndurability = "process"\n')
    for target in (folder, folder / "bespeak.toml"):
        assert store_place(str(target)) == str(folder / "state" / "s.db")


def test_a_configuration_by_the_other_name_is_read(tmp_path: Path) -> None:
    folder = deployment(tmp_path, '[store]\nplace = "s.db"\n', name="agtp-server.toml")
    assert store_place(str(folder)) == str(folder / "s.db")


@pytest.mark.parametrize("name", ["", "app.py", "app.py:app", "menu.agis", "endpoints/wrong.toml"])
def test_without_a_setting_it_is_a_file_in_the_folder_of_the_target(tmp_path: Path, name: str) -> None:
    folder = deployment(tmp_path)
    (folder / "menu.agis").write_text("not even a document")
    target = folder / name if name else folder
    assert store_place(str(target)) == str((folder / name).parent / "bespeak.db" if name else folder / "bespeak.db")


def test_a_document_is_served_by_the_configuration_that_names_it(tmp_path: Path) -> None:
    folder = deployment(tmp_path, 'document = "menu.agis"\n[store]\nplace = "s.db"\n')
    (folder / "menu.agis").write_text("x")
    (folder / "other.agis").write_text("x")
    assert store_place(str(folder / "menu.agis")) == str(folder / "s.db")
    assert store_place(str(folder / "other.agis")) == str(folder / "bespeak.db")


def test_a_module_keeps_its_state_in_the_current_folder() -> None:
    assert store_place("rooms.main:app") == "bespeak.db"


def test_a_variable_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = deployment(tmp_path, '[store]\nplace = "postgresql://u:${ROOMS_PASSWORD}@h/n"\n')
    monkeypatch.setenv("ROOMS_PASSWORD", "s3cret")
    assert store_place(str(folder)) == "postgresql://u:s3cret@h/n"
    monkeypatch.delenv("ROOMS_PASSWORD")
    with pytest.raises(ConfigError, match=r"variable 'ROOMS_PASSWORD', which is not set.*--store"):
        store_place(str(folder))


def test_a_configuration_that_cannot_be_read_is_refused_as_that(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="the configuration cannot be used"):
        store_place(str(deployment(tmp_path, "[store\n")))


@pytest.mark.parametrize("configuration", ["[store]\nplace = 1\n", 'store = "x"\n', '[store]\nplace = ""\n'])
def test_a_configuration_that_does_not_say_where_is_refused_rather_than_guessed(
    tmp_path: Path, configuration: str
) -> None:
    with pytest.raises(ContractError, match="where the store is"):
        store_place(str(deployment(tmp_path, configuration)))


def test_errors_in_other_tables_do_not_block_the_store(tmp_path: Path) -> None:
    folder = deployment(tmp_path, '[server]\ncatalog = 1\n[listen]\nworkers = "x"\n[store]\nplace = "s.db"\n')
    assert store_place(str(folder)) == str(folder / "s.db")


@pytest.mark.parametrize("target", ["", "nothing-there", "agtp://host", "x.txt", "no module:app"])
def test_an_invalid_target_is_refused_with_the_valid_forms(target: str) -> None:
    with pytest.raises(ConfigError, match="there is no deployment at"):
        store_place(target)


@pytest.mark.parametrize(
    ("text", "names"), [("a:app", False), ("rooms:app", True), ("C:", False), ("rooms", False), ("rooms:1", False)]
)
def test_a_drive_letter_is_not_a_module(text: str, names: bool) -> None:
    assert names_attribute(text) is names


def test_an_empty_place_is_refused(tmp_path: Path) -> None:
    """Check a value such as that of `--store "$UNSET"`."""
    with pytest.raises(ConfigError, match="--store is empty"):
        store_place(str(tmp_path), "")
