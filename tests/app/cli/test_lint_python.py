"""`bespeak lint` of apps: files, modules, and folders whose configuration names one."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from click.testing import CliRunner
from tests.cases import rows
from tests.process import ROOT

from bespeak.app.cli.lint import lint

APP = """\
    from bespeak import App

    app = App("Rooms", server_id="rooms.example", operator="A", contact="a@b.example")
    print("to be kept out of reports")


    @app.endpoint("BOOK", "{path}", impact="reversible"){comment}
    def book(room_id: str) -> dict[str, str]:
        \"\"\"Book a room for a guest.

        Outcome: {outcome}
        \"\"\"
        return {{}}
"""
ENDPOINT = """\
[endpoint]
method = "FETCH"
path = "/{name}"
description = "Fetch a room."
errors = []

[endpoint.handler]
type = "registered_function"
function = "rooms.handlers.{name}"

[endpoint.semantic]
intent = "Fetch a room."
actor = "agent"
outcome = "The room is returned."
capability = "retrieval"
confidence = 1.0
impact = "informational"
is_idempotent = true

[endpoint.input_schema]
type = "object"

[endpoint.output_schema]
type = "object"
"""


def app(path: str = "/room", outcome: str = "A reservation exists.", comment: str = "") -> str:
    return dedent(APP).format(path=path, outcome=outcome, comment=comment)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> tuple[int, list[tuple[str, str, int, int]]]:
    result = CliRunner().invoke(lint, [*arguments, "--format", "json"])
    data: dict[str, Any] = json.loads(result.stdout)
    found = [(one["rule"], one["file"], one.get("line", 1), one.get("column", 1)) for one in data["findings"]]
    return result.exit_code, found


def test_app_is_checked_at_the_places_in_its_source_and_counted(here: Path) -> None:
    (here / "rooms.py").write_text(app(path="/found", outcome="Something happens."))
    assert run("rooms.py") == (0, [("P330", "rooms.py", 7, 23), ("S423", "rooms.py", 11, 14)])
    assert run("rooms.py", "--fail-on", "warning")[0] == 1
    (here / "rooms.py").write_text(app())
    assert CliRunner().invoke(lint, ["rooms.py"]).stdout == "Checked 1 file: nothing found.\n"


@pytest.mark.parametrize("target", ["rooms:app", "rooms.py:app"])
def test_a_named_app_is_checked(here: Path, target: str) -> None:
    (here / "rooms.py").write_text(app(path="/found"))
    assert run(target) == (0, [("P330", "rooms.py", 7, 23)])


@pytest.mark.parametrize("target", ["rooms.py", "rooms:app", "."])
def test_a_configuration_that_contradicts_its_app_is_found(here: Path, target: str) -> None:
    (here / "rooms.py").write_text(app())
    named = 'app = "rooms:app"\n' if target == "." else ""
    (here / "bespeak.toml").write_text(f'[server]\noperator = "B"\n{named}')
    assert ("Y822", "bespeak.toml", 2) in [finding[:3] for finding in run(target)[1]]


def test_the_app_of_each_folder_is_checked(here: Path) -> None:
    for name, path in (("one", "/found"), ("two", "/sending-mail")):
        (here / name).mkdir()
        (here / name / "rooms.py").write_text(app(path=path))
        server = '[server]\nserver_id = "rooms.example"\noperator = "A"\ncontact = "a@b.example"\napp = "rooms:app"\n'
        (here / name / "bespeak.toml").write_text(server)
    assert run(".") == (0, [("P330", "one/rooms.py", 7, 23), ("P330", "two/rooms.py", 7, 23)])
    assert run(".", "--no-import") == (0, [])


def test_endpoints_of_files_and_of_the_app_must_not_collide(here: Path) -> None:
    from tests.checks.lint.test_reading import ENDPOINT

    (here / "rooms.py").write_text(app(path="/rooms").replace('"BOOK"', '"QUERY"').replace("Book a", "Query a"))
    server = '[server]\nserver_id = "rooms.example"\noperator = "A"\ncontact = "a@b.example"\napp = "rooms:app"\n'
    (here / "bespeak.toml").write_text(server)
    (here / "endpoints").mkdir()
    (here / "endpoints" / "query.toml").write_text(ENDPOINT)
    code, found = run(".", "--select", "P307")
    assert (code, found) == (1, [("P307", "rooms.py", 7, 24)])


def test_a_comment_at_the_decorator_ignores_a_finding_in_the_docstring(here: Path) -> None:
    comment = "  # bespeak: ignore[S423] a joke"
    (here / "rooms.py").write_text(app(outcome="Something happens.", comment=comment))
    assert run("rooms.py") == (0, [])
    (here / "rooms.py").write_text(app(comment=comment))
    code, found = run("rooms.py")
    assert [rule for rule, *_ in found] == ["D190"]
    before = (here / "rooms.py").read_text()
    assert CliRunner().invoke(lint, ["rooms.py", "--fix"]).exit_code == code == 0
    assert (here / "rooms.py").read_text() == before


@rows(
    "text, rule, line",
    ("x = 1\n\nimport missing_module_of_a_test\n", "H730", 3),
    ("def f(:\n", "H730", 1),
    ("import sys\nsys.exit(3)\n", "H730", 2),
    ("x = 1\n", "H730", 1),
    (app(path="/book"), "P302", 7),
)
def test_a_module_that_cannot_be_used_is_a_finding_with_its_line(here: Path, text: str, rule: str, line: int) -> None:
    (here / "rooms.py").write_text(text)
    code, found = run("rooms.py")
    assert (code, [found_at[:3] for found_at in found]) == (1, [(rule, "rooms.py", line)])


def test_a_declaration_that_is_refused_offers_no_fix(here: Path) -> None:
    (here / "rooms.py").write_text(app().replace('"BOOK"', '"BOOKK"'))
    data = json.loads(CliRunner().invoke(lint, ["rooms.py", "--format", "json"]).stdout)
    assert ([one["rule"] for one in data["findings"]], data["summary"]["fixable_unsafe"]) == (["M202"], 0)


def test_a_recipe_of_an_app_is_checked_with_its_endpoints(here: Path) -> None:
    text = (ROOT / "docs_src" / "compositions" / "stays" / "stays.py").read_text()
    (here / "bespeak.toml").write_text('[server]\napp = "stays:app"\n')
    (here / "stays.py").write_text(text)
    assert [found for found in run(".")[1] if found[0].startswith("H7")] == []
    (here / "stays.py").write_text(text.replace('"guest": guest},\n        name', '"guests": guest},\n        name'))
    assert [found[:2] for found in run(".")[1] if found[0].startswith("H7")] == [("H744", "stays.py")] * 2


def test_functions_of_endpoint_files_that_do_not_say_what_they_return_are_found_without_an_import(here: Path) -> None:
    (here / "bespeak.toml").write_text(
        '[server]\nserver_id = "rooms.example"\noperator = "A"\ncontact = "a@b.example"\n'
    )
    (here / "rooms").mkdir()
    (here / "rooms" / "handlers.py").write_text(
        "import missing_module\n\n"
        "def bare(room_id: str): ...\n\n"
        "def anything(room_id: str) -> typing.Any: ...\n\n"
        'async def quoted(room_id: str) -> "Any": ...\n\n'
        "def typed(room_id: str) -> Room: ...\n"
    )
    (here / "endpoints").mkdir()
    for name in ("bare", "anything", "quoted", "typed", "absent"):
        (here / "endpoints" / f"{name}.toml").write_text(ENDPOINT.format(name=name))
    found = [one for one in run("--select", "H708")[1] if one[0] == "H708"]
    assert found == [("H708", "rooms/handlers.py", line, 1) for line in (3, 5, 7)]
    assert run("--select", "H708", "--no-import")[1] == []
