"""Test `bespeak diff` with real documents, folders, revisions and servers."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.cases import rows
from tests.process import HOTEL, bespeak, serving

pytestmark = pytest.mark.process

AGIS = """\
agis: "1.0"
service: Rooms
agtp: agtp://rooms.example
description: Rooms to let.
version: "{version}"
vocabulary:
  declared_verbs: [BOOK]
  domain: travel
endpoints:
  - method: BOOK
    path: /room
    description: Reserve a room.
    semantic:
      intent: Reserves a room on behalf of the agent.
      actor: agent
      outcome: A reservation exists.
      impact_tier: reversible
      is_idempotent: {idempotent}
    input:
      type: object
      properties:
        room:
          type: string
          maxLength: {longest}
    output:
      type: object
      properties:
        id:
          type: string
    errors: [room_taken]
"""

APP = '''
from bespeak import App

app = App("Rooms", server_id="rooms.example", operator="Rooms", contact="ops@rooms.example")


@app.endpoint("QUERY", "/rooms", impact="informational")
def find_rooms({parameter}) -> dict[str, str]:
    """Find rooms.

    Outcome: The rooms are returned.
    """
    return {{}}
'''


def agis(path: Path, version: str = "1.0.0", idempotent: str = "true", longest: int = 20) -> Path:
    path.write_text(AGIS.format(version=version, idempotent=idempotent, longest=longest))
    return path


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return bespeak("diff", *(str(argument) for argument in arguments), cwd=cwd)


def found(*arguments: object, cwd: Path) -> dict[str, Any]:
    done = run(*arguments, "--json", cwd=cwd)
    assert done.returncode in (0, 1), done.stderr
    document = json.loads(done.stdout)
    assert isinstance(document, dict)
    return document


def rules(document: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(change["rule"], change["level"], change["endpoint"]) for change in document["changes"]]


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


def commit(folder: Path) -> None:
    if not (folder / ".git").is_dir():
        git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "a revision")


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Write an AGIS document twice, the second with a lower limit and no longer idempotent."""
    return agis(tmp_path / "old.agis"), agis(tmp_path / "new.agis", "1.1.0", "false", 10)


def test_report_shows_each_change_with_location_and_help(pair: tuple[Path, Path], tmp_path: Path) -> None:
    done = run("old.agis", "new.agis", cwd=tmp_path)
    assert done.returncode == 1
    fingerprint = r"[0-9a-f]{16}"
    expected = r"""old.agis -> new.agis

BOOK /room
  breaking  C129  input `room`: `maxLength` 20 -> 10
                  Requests that were good are refused now\. .*
                  new\.agis:24:11  fingerprint FINGERPRINT
  breaking  C152  is_idempotent: true -> false
                  Clients that repeat .*
                  new\.agis:18:7  fingerprint FINGERPRINT

2 breaking\.
These changes need a major bump; 1\.0\.0 -> 1\.1\.0 is a minor bump: too small\.
To accept these changes, add --approve --reason TEXT; their fingerprints are recorded\.
"""
    assert re.fullmatch(expected.replace("FINGERPRINT", fingerprint), done.stdout), done.stdout
    assert "\x1b" not in done.stdout


def test_a_contract_does_not_differ_from_itself(tmp_path: Path) -> None:
    done = run(HOTEL, HOTEL, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("No changes.\nNothing changed.\n")


def test_an_endpoint_file_is_compared_with_lines(tmp_path: Path) -> None:
    text = (HOTEL / "endpoints" / "book-room.toml").read_text()
    (tmp_path / "old.toml").write_text(text)
    (tmp_path / "new.toml").write_text(
        text.replace('required_scopes = ["booking:room"', 'required_scopes = ["booking:suite"')
    )
    document = found("old.toml", "new.toml", cwd=tmp_path)
    assert rules(document) == [("C110", "breaking", "BOOK /room"), ("C111", "safe", "BOOK /room")]
    line = text.splitlines().index('required_scopes = ["booking:room", "calendar:write"]') + 1
    assert document["changes"][0]["location"] == f"new.toml:{line}:1"


def test_a_folder_is_compared_with_its_policies(tmp_path: Path) -> None:
    folder = tmp_path / "hotel"
    shutil.copytree(HOTEL, folder)
    (folder / "endpoints" / "write-note.toml").unlink()
    configuration = folder / "bespeak.toml"
    configuration.write_text(configuration.read_text().replace("scope_required_for_invocation = false", ""))
    document = found(HOTEL, folder, cwd=tmp_path)
    assert rules(document) == [("C170", "breaking", ""), ("C101", "breaking", "AUDITLOG /stays")]
    assert document["changes"][0]["location"].startswith(f"{configuration}:")


def test_folder_and_its_server_have_the_same_contract(tmp_path: Path) -> None:
    with serving(HOTEL) as server:
        assert rules(found(HOTEL, server.uri, cwd=tmp_path)) == []
        assert rules(found(server.uri, HOTEL, cwd=tmp_path)) == []
        manifest = bespeak("discover", server.uri, "--json").stdout
        (tmp_path / "manifest.json").write_text(manifest)
        assert rules(found("manifest.json", server.uri, cwd=tmp_path)) == []


def test_a_live_server_that_lost_an_endpoint_breaks_clients_of_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "hotel"
    shutil.copytree(HOTEL, folder)
    (folder / "endpoints" / "write-note.toml").unlink()
    with serving(folder) as server:
        done = run(HOTEL, server.uri, cwd=tmp_path)
    assert done.returncode == 1
    assert "AUDITLOG /stays\n  breaking  C101  the endpoint is gone" in done.stdout


def test_revision_of_a_file_a_folder_and_another_path(tmp_path: Path) -> None:
    agis(tmp_path / "rooms.agis")
    commit(tmp_path)
    agis(tmp_path / "rooms.agis", longest=10)
    commit(tmp_path)
    agis(tmp_path / "rooms.agis", longest=5)
    assert [change["old"] for change in found("git:HEAD~1", "rooms.agis", cwd=tmp_path)["changes"]] == [20]
    assert [change["old"] for change in found("git:HEAD", "rooms.agis", cwd=tmp_path)["changes"]] == [10]
    between = found("git:HEAD~1:rooms.agis", "git:HEAD:rooms.agis", cwd=tmp_path)["changes"]
    assert [(change["old"], change["new"], change["location"]) for change in between] == [(20, 10, None)]


def test_two_revisions_of_an_app_are_imported_separately(tmp_path: Path) -> None:
    for name, parameter in (("rooms.py", "beds: int = 1"), ("rooms.py", "beds: int")):
        (tmp_path / name).write_text(APP.format(parameter=parameter))
        commit(tmp_path)
    for target in ("rooms.py", "rooms:app", "rooms.py:app"):
        assert ("C120", "breaking", "QUERY /rooms") in rules(found("git:HEAD~1", target, cwd=tmp_path)), target


def test_deployment_with_an_app_is_imported(tmp_path: Path) -> None:
    (tmp_path / "rooms.py").write_text(APP.format(parameter="beds: int = 1"))
    (tmp_path / "bespeak.toml").write_text('[server]\napp = "rooms:app"\n')
    assert rules(found("rooms.py", ".", cwd=tmp_path)) == []


def test_wider_category_shows_more_changes(tmp_path: Path) -> None:
    old, new = agis(tmp_path / "old.agis"), agis(tmp_path / "new.agis", idempotent="false", longest=10)
    new.write_text(new.read_text().replace("Reserve a room.", "Take a room."))
    seen = {name: found(old, new, "--category", name, cwd=tmp_path) for name in ("wire", "contract", "prose")}
    assert {name: [rule for rule, _, _ in rules(document)] for name, document in seen.items()} == {
        "wire": ["C129"],
        "contract": ["C129", "C152"],
        "prose": ["C129", "C152", "C104"],
    }
    assert seen["wire"]["summary"]["hidden"] == 2


@rows(
    "changed, codes",
    ({"longest": 10}, {"breaking": 1, "risky": 1, "any": 1, "bump": 1, "none": 0}),
    ({"longest": 30}, {"breaking": 0, "risky": 0, "any": 1, "bump": 1, "none": 0}),
    ({"longest": 30, "version": "1.1.0"}, {"breaking": 0, "risky": 0, "any": 1, "bump": 0, "none": 0}),
    ({"version": "2.0.0"}, {"breaking": 0, "risky": 0, "any": 0, "bump": 0, "none": 0}),
)
def test_exit_code_follows_fail_on(changed: dict[str, Any], codes: dict[str, int], tmp_path: Path) -> None:
    agis(tmp_path / "old.agis")
    agis(tmp_path / "new.agis", **changed)
    assert {name: run("old.agis", "new.agis", "--fail-on", name, cwd=tmp_path).returncode for name in codes} == codes


def test_approved_changes_are_shown_and_do_not_fail(pair: tuple[Path, Path], tmp_path: Path) -> None:
    done = run(
        "old.agis", "new.agis", "--approve", "--reason", "Nobody calls it.", "--expires", "2999-12-31", cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "2 approved in bespeak-approvals.toml\n")
    again = run("old.agis", "new.agis", cwd=tmp_path)
    assert again.returncode == 0
    assert (
        "  approved  C129  input `room`: `maxLength` 20 -> 10\n                  Nobody calls it. (until 2999-12-31)"
        in again.stdout
    )
    assert "2 approved." in again.stdout
    written = (tmp_path / "bespeak-approvals.toml").read_text()
    assert run("old.agis", "new.agis", "--approve", "--reason", "x", cwd=tmp_path).returncode == 0
    assert (tmp_path / "bespeak-approvals.toml").read_text() == written


def test_new_change_is_not_covered_and_is_added_to_the_approvals(pair: tuple[Path, Path], tmp_path: Path) -> None:
    run("old.agis", "new.agis", "--approve", "--reason", "one", cwd=tmp_path)
    agis(tmp_path / "new.agis", "1.1.0", "false", 5)
    done = run("old.agis", "new.agis", cwd=tmp_path)
    assert done.returncode == 1
    assert "warning[C198] the approval" in done.stderr
    run("old.agis", "new.agis", "--approve", "--reason", "two", cwd=tmp_path)
    text = (tmp_path / "bespeak-approvals.toml").read_text()
    assert re.findall(r'reason = "(\w+)"', text) == ["one", "one", "two"]


def test_expired_approval_is_reported_and_ignored(pair: tuple[Path, Path], tmp_path: Path) -> None:
    run(
        "old.agis",
        "new.agis",
        "--approve",
        "--reason",
        "x",
        "--expires",
        "2020-01-01",
        "--approvals",
        "a.toml",
        cwd=tmp_path,
    )
    done = run("old.agis", "new.agis", "--approvals", "a.toml", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("C197") == 2
    assert "expired on 2020-01-01" in done.stderr


@rows(
    "form, part",
    ("markdown", "| **breaking** | C129 `limit-tightened` |"),
    ("github", "::error file=new.agis,line=24,"),
    ("sarif", '"ruleId": "C129"'),
    ("junit", "<testsuite"),
    ("gitlab", '"fingerprint"'),
    ("concise", "new.agis:24:11: "),
)
def test_machine_readable_formats_include_the_changes(
    form: str, part: str, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    done = run("old.agis", "new.agis", "--format", form, cwd=tmp_path)
    assert done.returncode == 1
    assert part in done.stdout


def test_json_is_one_document_with_everything(pair: tuple[Path, Path], tmp_path: Path) -> None:
    document = found("old.agis", "new.agis", cwd=tmp_path)
    assert document["failed"] is True
    assert document["summary"] == {"breaking": 2, "risky": 0, "safe": 0, "approved": 0, "hidden": 0}
    assert document["version"]["needed_bump"] == "major"
    assert [finding["rule"] for finding in document["findings"]] == ["C195"]
    first = document["changes"][0]
    assert (first["direction"], first["kind"], first["category"]) == ("request", "narrowed", "WIRE")
    assert (first["old"], first["new"], first["approved"]) == (20, 10, None)


@rows(
    "arguments, part",
    (("nowhere.agis", "new.agis"), "'nowhere.agis' not found"),
    (("broken.agis", "new.agis"), "broken.agis cannot be compared"),
    (("new.agis", "broken.toml"), "has errors; fix them first"),
    (("ftp://example.com", "new.agis"), "is not a supported URI"),
    (("git:HEAD", "new.agis"), "is not in a git repository"),
    (("git:HEAD", "agtp://127.0.0.1"), "write git:HEAD:PATH"),
    (("agtp://127.0.0.1:1", "new.agis"), "127.0.0.1"),
    (("nosuchmodule:app", "new.agis"), "nosuchmodule"),
    (("other.json", "new.agis"), "the kind of document is not known"),
    (("old.agis", "new.agis", "--approve"), "--approve needs --reason"),
    (("old.agis", "new.agis", "--approvals", "none.toml"), "the approvals file cannot be read"),
    (("old.agis", "new.agis", "--approvals", "broken.toml"), "the approvals file has errors"),
)
def test_invalid_contract_is_reported(
    arguments: tuple[str, ...], part: str, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "broken.agis").write_text("agis: [")
    (tmp_path / "broken.toml").write_text("[endpoint]\nmethod = 3\n")
    (tmp_path / "other.json").write_text("{}")
    done = run(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert part in done.stderr
    assert "Traceback" not in done.stderr


def test_old_document_may_have_errors_but_new_one_may_not(tmp_path: Path) -> None:
    agis(tmp_path / "good.agis")
    (tmp_path / "bad.agis").write_text(
        AGIS.replace("service: Rooms\n", "").format(version="1.0.0", idempotent="true", longest=20)
    )
    assert run("bad.agis", "good.agis", cwd=tmp_path).returncode == 0
    done = run("good.agis", "bad.agis", cwd=tmp_path)
    assert done.returncode == 2
    assert "bad.agis has errors; fix them first" in done.stderr


def test_colours_are_for_terminals(pair: tuple[Path, Path], tmp_path: Path) -> None:
    forced = bespeak(
        "diff", "old.agis", "new.agis", cwd=tmp_path, env={"FORCE_COLOR": "1", "NO_COLOR": "", "TERM": "xterm"}
    )
    assert "\x1b[1;31mbreaking\x1b[0m" in forced.stdout


def test_a_revision_leaves_no_files_behind(tmp_path: Path) -> None:
    agis(tmp_path / "rooms.agis")
    commit(tmp_path)
    place = tmp_path / "temporary"
    place.mkdir()
    done = bespeak("diff", "git:HEAD", "rooms.agis", cwd=tmp_path, env={**os.environ, "TMPDIR": str(place)})
    assert (done.returncode, list(place.iterdir())) == (0, [])
