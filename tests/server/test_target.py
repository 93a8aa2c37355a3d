"""What can be served, and what is said about the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.process import HOTEL

from bespeak.errors import BespeakError, ConfigError, ContractError
from bespeak.server.target import load_target

APP = '''
from bespeak import App

{name} = App("Test", server_id="test.example", operator="Test", contact="a@test.example")


@{name}.endpoint("QUERY", "/things", impact="informational")
def things() -> dict[str, int]:
    """List the things.

    Outcome: The things are returned.
    """
    return {{}}
'''


def test_a_folder_of_files_is_a_service() -> None:
    target = load_target(str(HOTEL))
    assert target.service.identity.server_id == "hotel.example"
    assert ("BOOK", "/room") in {endpoint.key for endpoint in target.service.endpoints}
    assert [resource.name for resource in target.service.resources] == ["house-rules"]


def test_a_python_file_is_a_service_and_two_of_one_name_do_not_meet(tmp_path: Path) -> None:
    for folder, name in (("a", "app"), ("b", "other")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "main.py").write_text(APP.format(name=name))
    assert load_target(str(tmp_path / "a" / "main.py")).service.endpoints
    assert load_target(f"{tmp_path / 'b' / 'main.py'}:other").service.endpoints


def test_a_module_in_the_current_folder_is_a_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "unlikely_module.py").write_text(APP.format(name="app"))
    monkeypatch.chdir(tmp_path)
    assert load_target("unlikely_module:app").service.identity.server_id == "test.example"


def test_an_app_in_a_folder_joins_its_files(tmp_path: Path) -> None:
    (tmp_path / "joined_app.py").write_text(APP.format(name="app"))
    (tmp_path / "bespeak.toml").write_text('[server]\napp = "joined_app:app"\n')
    target = load_target(str(tmp_path))
    assert target.service.identity.server_id == "test.example"
    assert [endpoint.key for endpoint in target.service.endpoints] == [("QUERY", "/things")]


@pytest.mark.parametrize("text", ["no/such/folder", "nothing.toml", "nothing.py", "agtp://host", "", "a b:c"])
def test_what_is_nothing_to_serve_is_said_with_what_would_be(text: str) -> None:
    with pytest.raises(BespeakError, match=r"nothing to serve|failed"):
        load_target(text)


def test_a_module_that_fails_to_import_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("1 / 0")
    with pytest.raises(ConfigError, match=r"broken\.py failed at .*broken\.py:1 with ZeroDivisionError"):
        load_target(str(tmp_path / "broken.py"))


def test_a_missing_app_is_named_with_those_that_exist(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(APP.format(name="service"))
    with pytest.raises(ConfigError, match="it has service"):
        load_target(str(tmp_path / "main.py"))


def test_a_function_of_the_configuration_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    (tmp_path / "bespeak.toml").write_text(
        '[server]\nserver_id = "a"\noperator = "b"\ncontact = "c"\nwildcard_handler = "no_such.module"\n'
    )
    with pytest.raises(ConfigError, match="wildcard_handler"):
        load_target(str(tmp_path))


@pytest.mark.parametrize(
    "line",
    [
        "[server",
        '[policies.methods]\nlegacy = ["GETT"]',
        '[policies]\nanonymous_discovery = "no"',
        '[policies.methods]\ndisallow = "X"',
    ],
)
def test_a_configuration_that_cannot_be_understood_is_not_served(tmp_path: Path, line: str) -> None:
    (tmp_path / "bespeak.toml").write_text(line + "\n")
    with pytest.raises(ContractError, match="configuration cannot be used"):
        load_target(str(tmp_path))
