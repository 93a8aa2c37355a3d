"""`bespeak catalog`, `methods` and `schema`: look up and compare."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.app.cli.invoking import invoking
from tests.cases import rows
from tests.documents.agis_documents import booking

from bespeak.app.cli.catalog import catalog, catalog_diff
from bespeak.app.cli.methods import methods, schema
from bespeak.contract.catalog.document import load_bundled
from bespeak.documents.schemas import SCHEMAS, load_schema

run = invoking(catalog)


def test_list_has_a_line_for_each_verb_of_a_version_or_category_and_marks_deprecated_ones() -> None:
    result = run("list", code=0)
    names = [line.split()[0] for line in result.stdout.splitlines()]
    assert names == sorted(load_bundled().names)
    assert len(run("list", "--version", "1.0.0").stdout.splitlines()) == 425
    lines = run("list", "--category", "creation", "--version", "1.0.0").stdout.splitlines()
    assert len(lines) == 36
    assert all("creation" in line for line in lines)
    (line,) = (line for line in run("list").stdout.splitlines() if line.startswith("AUDITLOG"))
    assert line.endswith("(deprecated; successor=LOG; removed_in=2.0.0)")


def test_list_is_plain_or_one_json_document_and_an_unknown_category_is_wrong_usage() -> None:
    document = json.loads(run("list", "--category", "notification", "--json").stdout)
    assert document["version"] == "1.1.0"
    assert {"SEND", "NOTIFY"} <= {verb["name"] for verb in document["verbs"]}
    assert "domain_spanning" in run("list", "--category", "poetry", code=2).stderr
    output = run("list").stdout
    assert output.isascii()
    assert "\x1b" not in output
    assert max(len(line) for line in output.splitlines()) > 100


@pytest.mark.parametrize("name", ["DELEGATE", "delegate"])
def test_show_describes_a_verb(name: str) -> None:
    result = run("show", name, code=0)
    assert result.stdout.splitlines() == [
        "DELEGATE  Hand a task to another agent with bounded authority",
        "categories     mechanics",
        "catalog        1.1.0",
        "floor method   supported by every server",
    ]


def test_search_finds_verbs_by_meaning_by_noun_by_sentence_and_by_description() -> None:
    found = {word: run("search", word, code=0).stdout.split()[0] for word in ("erase", "cancellation", "DELETE")}
    assert found == {"erase": "REMOVE", "cancellation": "CANCEL", "DELETE": "REMOVE"}
    assert "LEASE" not in run("search", "erase").stdout
    assert "CANCEL" in run("search", "calls a meeting off").stdout
    assert "PAY" in run("search", "paying").stdout
    assert "BILL" in run("search", "money").stdout
    document = json.loads(run("search", "erase", "--json", "--version", "1.0.0").stdout)
    assert (document["version"], document["verbs"][0]["name"]) == ("1.0.0", "REMOVE")
    assert "No verb of catalog 1.1.0 means 'zzzz'" in run("search", "zzzz", code=1).stderr


def test_show_describes_a_deprecated_verb() -> None:
    assert run("show", "AUDITLOG").stdout.splitlines()[-3:] == [
        "deprecated in  1.1.0",
        "removed in     2.0.0",
        "successor      LOG",
    ]


def test_show_as_json() -> None:
    assert json.loads(run("show", "AUDITLOG", "--json").stdout) == {
        "version": "1.1.0",
        "name": "AUDITLOG",
        "categories": ["mechanics"],
        "description": "Add an entry to the audit trail",
        "deprecated_in": "1.1.0",
        "removed_in": "2.0.0",
        "successor": "LOG",
        "embedded": False,
    }


@rows(
    "arguments, told",
    (["RESERV"], "'RESERV' is not in catalog 1.1.0. Did you mean RESERVE"),
    (["XQZ"], "'XQZ' is not in catalog 1.1.0. Try `bespeak catalog search`."),
    (["LOG", "--version", "1.0.0"], "'LOG' is not in catalog 1.0.0. It is in 1.1.0."),
    (["get"], "GET is an HTTP verb, which servers accept only if they opt in. Use FETCH."),
    (["BOOK" * 5_000], "BOOKBOOK' is not in catalog 1.1.0."),
    (["\x1b[31mRED"], "'\\x1b[31mRED' is not in catalog 1.1.0."),
)
def test_unknown_verb_gets_a_suggestion(arguments: list[str], told: str) -> None:
    result = run("show", *arguments, code=1)
    assert result.stdout == ""
    assert told in result.stderr
    assert len(result.stderr) < 200


@pytest.mark.parametrize("command", [["list"], ["show", "BOOK"]])
def test_unreadable_catalog_exits_with_two(command: list[str], tmp_path: Path) -> None:
    assert "none.json" in run(*command, "--version", tmp_path / "none.json", code=2).stderr


def test_custom_catalog_document_can_be_listed(tmp_path: Path) -> None:
    own = tmp_path / "own.json"
    document = json.loads(
        (Path(__file__).parents[3] / "src/bespeak/contract/catalog/data/methods-1.0.0.json").read_text()
    )
    document["version"] = "1.0.7"
    document["verbs"]["BOOK"]["description"] = "Ring\x07 the bell"
    own.write_text(json.dumps(document))
    assert run("show", "BOOK", "--version", own).stdout.splitlines()[:3] == [
        "BOOK  Ring\\x07 the bell",
        "categories     transaction",
        "catalog        1.0.7",
    ]


def test_bundled_versions_are_compared_and_equality_or_a_downgrade_is_reported() -> None:
    assert run("diff", "1.0.0", "1.1.0", code=0).stdout.startswith("Catalog 1.0.0 -> 1.1.0\n\nAdded (13)\n")
    assert run_diff("1.0.0", "1.0.0").stdout == "Catalog 1.0.0 -> 1.0.0\n\nNothing changed.\n"
    assert "1.1.0 -> 1.0.0 is a downgrade: too small." in run_diff("1.1.0", "1.0.0").stdout


DATA = Path(__file__).parents[3] / "src/bespeak/contract/catalog/data"

ENDPOINT = """
[endpoint]
method = "{method}"
path = "{path}"
description = "An endpoint of the test"
errors = []

[endpoint.input_schema]
type = "object"
additionalProperties = false

[endpoint.output_schema]
type = "object"

[endpoint.semantic]
intent = "Shows that the scan reads real files"
actor = "agent"
outcome = "The scan names this endpoint"
capability = "analysis"
confidence = 0.9
impact = "informational"
is_idempotent = true

[endpoint.handler]
type = "registered_function"
function = "somewhere.handle"
"""

RECIPES = """
[[recipe]]
name = "trip"

[[recipe.steps]]
method = "BOOK"
path = "/room"

[[recipe.steps]]
method = "AUDITLOG"
path = "/entries"
"""

SERVER = """
[server]
server_id = "rooms.example"
operator = "Rooms"
contact = "ops@rooms.example"

[policies.methods]
allow = ["BOOK", "AUDITLOG"]
disallow = ["AUDITLOG"]

[[policies.methods.redirects]]
from_method = "RESERVE"
from_path = "/room"
to_method = "AUDITLOG"
"""


run_diff = invoking(catalog_diff)


def document(version: str = "1.1.0") -> dict[str, Any]:
    loaded = json.loads((DATA / f"methods-{version}.json").read_text("utf-8"))
    assert isinstance(loaded, dict)
    return loaded


@pytest.fixture
def next_major(tmp_path: Path) -> Path:
    """Create a catalog 2.0.0 that removes AUDITLOG, adds TEST and deprecates BOOK."""
    new = document()
    new["version"] = "2.0.0"
    del new["verbs"]["AUDITLOG"]
    new["verbs"]["TEST"] = {"categories": ["analysis"], "description": "Try something out"}
    new["verbs"]["BOOK"]["deprecated_in"] = "2.0.0"
    path = tmp_path / "next.json"
    path.write_text(json.dumps(new))
    return path


@pytest.fixture
def deploy(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a deployment folder from its endpoints."""

    def write(*endpoints: tuple[str, str], recipes: str = "", server: str = "") -> Path:
        folder = tmp_path / "deployment"
        (folder / "endpoints").mkdir(parents=True)
        for number, (method, path) in enumerate(endpoints):
            (folder / "endpoints" / f"e{number}.toml").write_text(ENDPOINT.format(method=method, path=path))
        if recipes:
            (folder / "agtp-recipes.toml").write_text(recipes)
        (folder / "agtp-server.toml").write_text(server or SERVER.partition("[policies.methods]")[0])
        return folder

    return write


@pytest.mark.requirement("API-4.7-2")
def test_removed_verbs_without_a_deployment_are_shown_first_and_break_nothing(next_major: Path) -> None:
    result = run_diff("1.1.0", next_major, code=0)
    assert result.stdout.splitlines() == [
        "Catalog 1.1.0 -> 2.0.0",
        "",
        "Removed (1)",
        "  AUDITLOG  deprecated since 1.1.0; use LOG",
        "",
        "Added (1)",
        "  TEST  Try something out [analysis]",
        "",
        "Newly deprecated (1)",
        "  BOOK  deprecated in 2.0.0, no removal planned, no successor",
        "",
        "These changes need a major bump; 1.1.0 -> 2.0.0 is a major bump.",
    ]


def test_every_kind_of_change_has_its_section(tmp_path: Path) -> None:
    new = document()
    new["version"] = "1.1.1"
    new["embedded"].append("INSPECT")
    new["legacy"]["GET"]["preferred"] = "READ"
    new["categories"]["creation"] = "Make things"
    new["verbs"]["BOOK"] = {"categories": ["creation"], "description": "Take a seat"}
    for key in ("deprecated_in", "removed_in", "successor"):
        del new["verbs"]["AUDITLOG"][key]
    path = tmp_path / "new.json"
    path.write_text(json.dumps(new))
    lines = run_diff("1.1.0", path).stdout.splitlines()
    assert [line for line in lines if line and not line.startswith(" ")] == [
        "Catalog 1.1.0 -> 1.1.1",
        "Deprecation changed (1)",
        "Recategorised (1)",
        "Redescribed (1)",
        "Floor methods added (1)",
        "Legacy verbs changed (1)",
        "Categories changed (1)",
        "These changes need a minor bump; 1.1.0 -> 1.1.1 is a patch bump: too small.",
    ]
    assert "  BOOK  transaction -> creation" in lines
    assert "  AUDITLOG  deprecated in 1.1.0, removed in 2.0.0, use LOG -> not deprecated" in lines


@pytest.mark.requirement("API-4.7-1", "API-4.7-2")
def test_every_kind_of_conflict_in_a_folder_is_found(next_major: Path, deploy: Callable[..., Path]) -> None:
    folder = deploy(("AUDITLOG", "/entries"), ("QUERY", "/test"), ("BOOK", "/room"), recipes=RECIPES, server=SERVER)
    result = run_diff("1.1.0", next_major, "--against-deployment", folder, code=1)
    for heading in (
        "Paths that contain a new verb (1)",
        "Endpoints that name a removed verb (1)",
        "Recipes that call a removed verb (1)",
        "Policy entries that name a removed verb (3)",
        "Newly deprecated verbs in use (2)",
    ):
        assert heading in result.stdout.splitlines()
    assert result.stdout.splitlines()[-1] == f"6 breaking, 2 advisory in {folder}."


@pytest.mark.requirement("API-4.7-2")
def test_unaffected_deployment_exits_with_zero(next_major: Path, deploy: Callable[..., Path]) -> None:
    folder = deploy(("QUERY", "/rooms"))
    result = run_diff("1.1.0", next_major, "--against-deployment", folder, code=0)
    assert result.stdout.splitlines()[-1] == f"Nothing breaks in {folder}."


def test_deprecated_verbs_in_use_are_advice_with_exit_code_0(next_major: Path, deploy: Callable[..., Path]) -> None:
    folder = deploy(("BOOK", "/room"))
    result = run_diff("1.1.0", next_major, "--against-deployment", folder, code=0)
    assert result.stdout.splitlines()[-1] == f"Nothing breaks in {folder}. 1 advisory."


def test_the_shipped_upgrade_breaks_a_path_that_is_now_a_verb(deploy: Callable[..., Path]) -> None:
    result = run_diff("1.0.0", "1.1.0", "--against-deployment", deploy(("QUERY", "/log")), "--json", code=1)
    report = json.loads(result.stdout)
    assert report["breaking"] is True
    (conflict,) = report["conflicts"]
    assert (conflict["kind"], conflict["method"], conflict["artefact"]) == ("path", "LOG", "endpoint QUERY /log")
    assert "e0.toml" in conflict["location"]


@pytest.mark.requirement("API-4.7-2")
def test_unreadable_deployment_exits_with_two(next_major: Path, deploy: Callable[..., Path]) -> None:
    folder = deploy(("AUDITLOG", "/entries"))
    (folder / "endpoints" / "broken.toml").write_text("[endpoint\n")
    result = run_diff("1.1.0", next_major, "--against-deployment", folder, code=2)
    assert "broken.toml" in result.stderr
    assert "Endpoints that name a removed verb (1)" in result.stdout


def test_python_app_is_reported_as_not_scanned(next_major: Path, deploy: Callable[..., Path]) -> None:
    folder = deploy(("QUERY", "/rooms"))
    (folder / "agtp-server.toml").rename(folder / "bespeak.toml")
    with (folder / "bespeak.toml").open("a") as file:
        file.write('app = "rooms:app"\n')
    result = run_diff("1.1.0", next_major, "--against-deployment", folder, code=0)
    assert "the endpoints of rooms:app are written in Python and were not scanned" in result.stderr


def test_the_document_of_a_deployment_is_scanned_too(tmp_path: Path) -> None:
    (tmp_path / "bespeak.toml").write_text('document = "rooms.agis"\n')
    agis = booking()
    agis["endpoints"][0]["path"] = "/learn"
    (tmp_path / "rooms.agis").write_text(json.dumps(agis))
    result = run_diff("1.0.0", "1.1.0", "--against-deployment", tmp_path, code=1)
    assert "rooms.agis:1:" in result.stdout
    assert "BOOK /learn" in result.stdout
    (tmp_path / "rooms.agis").write_text("[")
    assert run_diff("1.0.0", "1.1.0", "--against-deployment", tmp_path).exit_code == 2


@pytest.mark.requirement("API-4.7-2")
@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"version": "1"}'])
def test_invalid_catalog_document_exits_with_two(content: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text(content)
    result = run_diff("1.0.0", bad, code=2)
    assert "bad.json" in result.stderr
    assert result.stdout == ""


def test_both_bad_documents_are_reported_also_as_json(tmp_path: Path) -> None:
    result = run_diff(tmp_path / "one.json", tmp_path / "two.json", code=2)
    assert "one.json" in result.stderr
    assert "two.json" in result.stderr
    result = run_diff("1.0.0", tmp_path / "none.json", "--json", code=2)
    report = json.loads(result.stdout)
    assert report["diff"] is None
    assert [finding["rule"] for finding in report["findings"]] == ["V562"]


@pytest.mark.parametrize(
    "arguments", [[], ["1.0.0"], ["1.0.0", "1.1.0", "--against-deployment", "/nowhere"], ["1.0.0", "1.1.0", "--odd"]]
)
def test_wrong_usage_gives_exit_code_2(arguments: list[str]) -> None:
    assert run_diff(*arguments).exit_code == 2


def test_json_is_one_document_with_the_diff() -> None:
    report = json.loads(run_diff("1.0.0", "1.1.0", "--json").stdout)
    assert len(report["diff"]["added"]) == 13
    assert (report["diff"]["needed_bump"], report["conflicts"]) == ("minor", None)
    assert report["breaking"] is False
    assert report["findings"] == []


@pytest.mark.process
def test_output_in_a_pipe_is_plain_and_never_cut_by_diff(tmp_path: Path) -> None:
    new = document()
    new["verbs"]["BOOK"]["description"] = "x" * 500 + "\x1b[31m"
    path = tmp_path / "new.json"
    path.write_text(json.dumps(new))
    done = subprocess.run(
        [sys.executable, "-c", "from bespeak.app.cli.catalog import main; main()", "1.1.0", str(path)],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert b"x" * 500 + b"\\x1b[31m" in done.stdout
    assert b"\x1b" not in done.stdout


run_methods = invoking(methods)


def test_methods_are_listed_by_category_and_shown_with_parameters_results_and_errors() -> None:
    names = [line.split()[0] for line in run_methods("list", "--category", "transact").stdout.splitlines()]
    assert "LOG" in names
    assert json.loads(run_methods("list", "--json").stdout)[0]["category"] == "acquire"
    names = [line.split()[0] for line in run_methods("list", "--category", "orchestrate").stdout.splitlines()]
    assert {"PAUSE", "RESUME", "RETRY"} <= set(names)
    assert "'nap' is not a valid standard method" in run_methods("show", "nap", code=2).stderr
    text = run_methods("show", "log").stdout
    assert "event_type           required  string" in text
    assert "info | warning | error | critical" in text
    assert "invalid-data         400" in text
    text = run_methods("show", "chain").stdout
    assert "  steps                required  list of object\n    name               optional  string\n" in text
    assert "      method           required  string\n" in text


def test_schema_is_printed_unchanged_or_listed_and_an_unknown_name_is_wrong_usage() -> None:
    result = CliRunner().invoke(schema, ["agis"])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == load_schema("agis")
    assert [line.split()[0] for line in CliRunner().invoke(schema, []).stdout.splitlines()] == list(SCHEMAS)
    result = CliRunner().invoke(schema, ["poetry"])
    assert result.exit_code == 2
    assert "agis" in result.stderr
