"""A folder as one deployment: its files, and file errors."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.cases import rows

from bespeak.contract.service import ServerIdentity
from bespeak.documents.deployment.deployment import Deployment, read_deployment
from bespeak.text.diagnostics.diagnostic import Diagnostic

SERVER = '[server]\nserver_id = "s"\noperator = "o"\ncontact = "c"\n'
RECIPE = '[[recipe]]\nname = "r"\nsteps = [{ method = "QUERY" }]\n'


def endpoint(path: str, method: str = "BOOK") -> str:
    return f"""\
[endpoint]
method = "{method}"
path = "{path}"
description = "Books."
input = {{}}
output = []
errors = []
[endpoint.semantic]
intent = "Reserve a room."
actor = "agent"
outcome = "It is reserved."
capability = "transaction"
confidence = 0.5
impact = "reversible"
is_idempotent = true
[endpoint.handler]
type = "registered_function"
function = "rooms.book"
"""


def agent(digit: str) -> str:
    return f'{{"agent_id": "{digit * 64}", "name": "{digit}"}}'


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def rules(findings: list[Diagnostic]) -> list[str]:
    return [finding.rule for finding in findings]


def paths(deployment: Deployment) -> list[str]:
    return [found.path for found in deployment.endpoints]


def test_a_folder_is_read_whole(tmp_path: Path) -> None:
    files = {
        "bespeak.toml": SERVER,
        "endpoints/b.toml": endpoint("/b"),
        "endpoints/deep/er/a.toml": endpoint("/a"),
        "endpoints/notes.txt": "not read",
        "endpoints/.hidden/x.toml": "not read",
        "endpoints/.swap.toml": "not read",
        "extra.toml": endpoint("/c"),
        "pyproject.toml": "[project]\nname = 'not read'\n",
        "agtp-recipes.toml": RECIPE,
        "agents/one.json": agent("1"),
    }
    deployment, findings = read_deployment(write(tmp_path, files))
    assert findings == []
    assert paths(deployment) == ["/b", "/a", "/c"]
    assert [recipe.name for recipe in deployment.recipes] == ["r"]
    assert [found.name for found in deployment.agents] == ["1"]
    assert deployment.service().identity == ServerIdentity(server_id="s", operator="o", contact="c")
    assert deployment.endpoints[0].location is not None
    assert deployment.endpoints[0].location.file == str(tmp_path / "endpoints" / "b.toml")


GOOD = {"bespeak.toml": SERVER, "endpoints/a.toml": endpoint("/a")}
BROKEN = {"endpoints/a.toml": "[endpoint", "endpoints/b.toml": "x = 1\n", "endpoints/c.toml": endpoint("/c")}


@rows(
    "files, found, served",
    pytest.param(GOOD | {"agtp-server.toml": SERVER.replace('"s"', '"t"')}, [], ["/a"], id="bespeak.toml first"),
    pytest.param({"a.toml": endpoint("/a")}, ["Y820"], ["/a"], id="no server_id"),
    pytest.param({"bespeak.toml": '[server]\napp = "hotel:app"\n'}, [], [], id="an app"),
    pytest.param({}, ["Y820", "D113"], [], id="empty"),
    pytest.param(GOOD | {"endpoints/b.toml": endpoint("/a", "CANCEL")}, [], ["/a", "/a"], id="another method"),
    pytest.param(
        {"bespeak.toml": SERVER, **BROKEN, "agents/bad.json": "{", "agents/good.json": agent("2")},
        ["D102", "D103", "D102"],
        ["/c"],
        id="broken files leave the others",
    ),
    pytest.param(GOOD | {"bespeak.toml": SERVER + 'recipes = "mine.toml"\n'}, ["D101"], ["/a"], id="no recipes"),
)
def test_findings_and_endpoints(tmp_path: Path, files: dict[str, str], found: list[str], served: list[str]) -> None:
    deployment, findings = read_deployment(write(tmp_path, files))
    assert (rules(findings), paths(deployment)) == (found, served)
    configured = "app" not in files.get("bespeak.toml", "app")
    assert deployment.service().identity.server_id == ("s" if configured else "localhost")
    assert [one.name for one in deployment.agents] == (["2"] if "agents/good.json" in files else [])


def test_recipes_are_found_beside_the_endpoints_and_a_configuration_can_be_named(tmp_path: Path) -> None:
    deployment, findings = read_deployment(write(tmp_path, GOOD | {"endpoints/agtp-recipes.toml": RECIPE}))
    assert (findings, len(deployment.recipes)) == ([], 1)
    write(tmp_path, {"other.toml": SERVER + 'endpoints = "contracts"\n', "contracts/a.toml": endpoint("/a")})
    deployment, findings = read_deployment(tmp_path / "other.toml")
    assert (findings, paths(deployment), deployment.root) == ([], ["/a"], tmp_path)


def test_an_endpoint_or_a_recipe_file_can_be_named_by_itself(tmp_path: Path) -> None:
    write(tmp_path, {"a.toml": endpoint("/a"), "b.toml": endpoint("/b"), "r.toml": RECIPE, "bad.toml": "[endpoint]\n"})
    assert paths(read_deployment(tmp_path / "a.toml")[0]) == ["/a"]
    assert len(read_deployment(tmp_path / "r.toml")[0].recipes) == 1
    deployment, findings = read_deployment(tmp_path / "bad.toml")
    assert deployment.endpoints == ()
    assert "D103" in rules(findings)


@pytest.mark.parametrize("name", ["none", "none.toml", "pipe.toml", "x" * 5000, "a\0b"])
def test_unreadable_path_is_a_finding(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    deployment, findings = read_deployment(tmp_path / name)
    assert rules(findings) == ["D101"]
    assert deployment.endpoints == ()


def test_two_files_with_one_endpoint_are_an_error_that_names_both(tmp_path: Path) -> None:
    files = {"bespeak.toml": SERVER, "endpoints/a.toml": endpoint("/x"), "endpoints/b.toml": endpoint("/x")}
    deployment, (finding,) = read_deployment(write(tmp_path, files))
    assert (finding.rule, finding.severity) == ("D111", "error")
    assert "a.toml" in finding.message
    assert finding.location.file.endswith("b.toml")
    assert len(deployment.endpoints) == 1


def test_two_documents_of_one_agent_are_an_error(tmp_path: Path) -> None:
    files = {"bespeak.toml": SERVER, "a.toml": endpoint("/a"), "agents/a.json": agent("1"), "agents/b.json": agent("1")}
    deployment, (finding,) = read_deployment(write(tmp_path, files))
    assert finding.rule == "D109"
    assert "a.json" in finding.message
    assert len(deployment.agents) == 1


@pytest.mark.parametrize("setting", ['[server]\nendpoints = "none"\n', '[agents]\ndirectory = "none"\n'])
def test_a_folder_that_was_named_must_exist(tmp_path: Path, setting: str) -> None:
    files = {"bespeak.toml": setting, "a.toml": endpoint("/a")}
    assert "D101" in rules(read_deployment(write(tmp_path, files))[1])


def test_a_link_back_into_the_folder_is_a_finding_and_not_a_loop(tmp_path: Path) -> None:
    write(tmp_path, {"bespeak.toml": SERVER, "endpoints/a.toml": endpoint("/a")})
    (tmp_path / "endpoints" / "again").symlink_to(tmp_path / "endpoints", target_is_directory=True)
    deployment, findings = read_deployment(tmp_path)
    assert rules(findings) == ["D112"]
    assert paths(deployment) == ["/a"]


def test_a_link_to_another_folder_is_followed(tmp_path: Path) -> None:
    write(tmp_path, {"here/bespeak.toml": SERVER, "there/a.toml": endpoint("/a")})
    (tmp_path / "here" / "endpoints").symlink_to(tmp_path / "there", target_is_directory=True)
    deployment, findings = read_deployment(tmp_path / "here")
    assert findings == []
    assert paths(deployment) == ["/a"]


def test_dangling_link_is_a_finding(tmp_path: Path) -> None:
    write(tmp_path, {"bespeak.toml": SERVER, "endpoints/a.toml": endpoint("/a")})
    (tmp_path / "endpoints" / "b.toml").symlink_to(tmp_path / "nowhere")
    (tmp_path / "endpoints" / "c.toml").symlink_to(tmp_path / "endpoints" / "c.toml")
    assert rules(read_deployment(tmp_path)[1]) == ["D101", "D101"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_files_and_folders_without_permission_are_findings(tmp_path: Path) -> None:
    write(tmp_path, {"bespeak.toml": SERVER, "endpoints/a.toml": "", "endpoints/shut/b.toml": ""})
    (tmp_path / "endpoints" / "a.toml").chmod(0)
    (tmp_path / "endpoints" / "shut").chmod(0)
    try:
        assert rules(read_deployment(tmp_path)[1]) == ["D101", "D101"]
    finally:
        (tmp_path / "endpoints" / "shut").chmod(0o700)
