"""`agtp-catalog-diff`: the report and the exit codes of AGTP-API 4.7, over real folders."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.documents.agis_documents import booking

from bespeak.app.cli.catalog_diff import catalog_diff

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


def run(*arguments: object) -> Result:
    return CliRunner().invoke(catalog_diff, [str(argument) for argument in arguments])


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
    result = run("1.1.0", next_major)
    assert result.exit_code == 0
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
    lines = run("1.1.0", path).stdout.splitlines()
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


def test_equal_catalogs_have_no_changes() -> None:
    assert run("1.0.0", "1.0.0").stdout == "Catalog 1.0.0 -> 1.0.0\n\nNothing changed.\n"


def test_downgrade_is_reported() -> None:
    assert "1.1.0 -> 1.0.0 is a downgrade: too small." in run("1.1.0", "1.0.0").stdout


@pytest.mark.requirement("API-4.7-1", "API-4.7-2")
def test_every_kind_of_conflict_in_a_folder_is_found(next_major: Path, deploy: Callable[..., Path]) -> None:
    folder = deploy(("AUDITLOG", "/entries"), ("QUERY", "/test"), ("BOOK", "/room"), recipes=RECIPES, server=SERVER)
    result = run("1.1.0", next_major, "--against-deployment", folder)
    assert result.exit_code == 1, result.output
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
    result = run("1.1.0", next_major, "--against-deployment", folder)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == f"Nothing breaks in {folder}."


def test_deprecated_verbs_in_use_are_advice_with_exit_code_0(next_major: Path, deploy: Callable[..., Path]) -> None:
    folder = deploy(("BOOK", "/room"))
    result = run("1.1.0", next_major, "--against-deployment", folder)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == f"Nothing breaks in {folder}. 1 advisory."


def test_the_shipped_upgrade_breaks_a_path_that_is_now_a_verb(deploy: Callable[..., Path]) -> None:
    result = run("1.0.0", "1.1.0", "--against-deployment", deploy(("QUERY", "/log")), "--json")
    assert result.exit_code == 1, result.output
    report = json.loads(result.stdout)
    assert report["breaking"] is True
    (conflict,) = report["conflicts"]
    assert (conflict["kind"], conflict["method"], conflict["artefact"]) == ("path", "LOG", "endpoint QUERY /log")
    assert "e0.toml" in conflict["location"]


@pytest.mark.requirement("API-4.7-2")
def test_unreadable_deployment_exits_with_two(next_major: Path, deploy: Callable[..., Path]) -> None:
    folder = deploy(("AUDITLOG", "/entries"))
    (folder / "endpoints" / "broken.toml").write_text("[endpoint\n")
    result = run("1.1.0", next_major, "--against-deployment", folder)
    assert result.exit_code == 2
    assert "broken.toml" in result.stderr
    assert "Endpoints that name a removed verb (1)" in result.stdout


def test_python_app_is_reported_as_not_scanned(next_major: Path, deploy: Callable[..., Path]) -> None:
    folder = deploy(("QUERY", "/rooms"))
    (folder / "agtp-server.toml").rename(folder / "bespeak.toml")
    with (folder / "bespeak.toml").open("a") as file:
        file.write('app = "rooms:app"\n')
    result = run("1.1.0", next_major, "--against-deployment", folder)
    assert result.exit_code == 0, result.output
    assert "the endpoints of rooms:app are written in Python and were not scanned" in result.stderr


def test_the_document_of_a_deployment_is_scanned_too(tmp_path: Path) -> None:
    (tmp_path / "bespeak.toml").write_text('document = "rooms.agis"\n')
    agis = booking()
    agis["endpoints"][0]["path"] = "/learn"
    (tmp_path / "rooms.agis").write_text(json.dumps(agis))
    result = run("1.0.0", "1.1.0", "--against-deployment", tmp_path)
    assert result.exit_code == 1
    assert "rooms.agis:1:" in result.stdout
    assert "BOOK /learn" in result.stdout
    (tmp_path / "rooms.agis").write_text("[")
    assert run("1.0.0", "1.1.0", "--against-deployment", tmp_path).exit_code == 2


@pytest.mark.requirement("API-4.7-2")
@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"version": "1"}'])
def test_invalid_catalog_document_exits_with_two(content: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text(content)
    result = run("1.0.0", bad)
    assert result.exit_code == 2
    assert "bad.json" in result.stderr
    assert result.stdout == ""


def test_both_documents_are_reported_when_both_are_bad(tmp_path: Path) -> None:
    result = run(tmp_path / "one.json", tmp_path / "two.json")
    assert result.exit_code == 2
    assert "one.json" in result.stderr
    assert "two.json" in result.stderr


@pytest.mark.parametrize(
    "arguments", [[], ["1.0.0"], ["1.0.0", "1.1.0", "--against-deployment", "/nowhere"], ["1.0.0", "1.1.0", "--odd"]]
)
def test_wrong_usage_gives_exit_code_2(arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2


def test_json_is_one_document_with_the_diff() -> None:
    report = json.loads(run("1.0.0", "1.1.0", "--json").stdout)
    assert len(report["diff"]["added"]) == 13
    assert report["diff"]["needed_bump"] == "minor"
    assert report["conflicts"] is None
    assert report["breaking"] is False
    assert report["findings"] == []


def test_json_includes_findings_of_an_invalid_document(tmp_path: Path) -> None:
    result = run("1.0.0", tmp_path / "none.json", "--json")
    assert result.exit_code == 2
    report = json.loads(result.stdout)
    assert report["diff"] is None
    assert [finding["rule"] for finding in report["findings"]] == ["V562"]


@pytest.mark.process
def test_output_in_a_pipe_is_plain_and_never_cut(tmp_path: Path) -> None:
    new = document()
    new["verbs"]["BOOK"]["description"] = "x" * 500 + "\x1b[31m"
    path = tmp_path / "new.json"
    path.write_text(json.dumps(new))
    done = subprocess.run(
        [sys.executable, "-c", "from bespeak.app.cli.catalog_diff import main; main()", "1.1.0", str(path)],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert b"x" * 500 + b"\\x1b[31m" in done.stdout
    assert b"\x1b" not in done.stdout
