"""A folder as one deployment: its files, and file errors."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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


def test_bespeak_toml_takes_precedence_over_agtp_server_toml(tmp_path: Path) -> None:
    files = {
        "bespeak.toml": SERVER,
        "agtp-server.toml": SERVER.replace('"s"', '"t"'),
        "endpoints/a.toml": endpoint("/a"),
    }
    deployment, findings = read_deployment(write(tmp_path, files))
    assert findings == []
    assert deployment.service().identity.server_id == "s"


def test_missing_server_id_gets_a_default_with_a_warning(tmp_path: Path) -> None:
    deployment, findings = read_deployment(write(tmp_path, {"a.toml": endpoint("/a")}))
    assert rules(findings) == ["Y820"]
    assert deployment.service().identity.server_id == "localhost"
    assert paths(deployment) == ["/a"]


def test_an_app_needs_neither_an_identity_nor_endpoint_files(tmp_path: Path) -> None:
    deployment, findings = read_deployment(write(tmp_path, {"bespeak.toml": '[server]\napp = "hotel:app"\n'}))
    assert findings == []
    assert deployment.server.main.app == "hotel:app"


def test_an_empty_folder_is_a_warning(tmp_path: Path) -> None:
    assert rules(read_deployment(tmp_path)[1]) == ["Y820", "D113"]


def test_a_configuration_can_be_named_by_itself(tmp_path: Path) -> None:
    write(tmp_path, {"other.toml": SERVER + 'endpoints = "contracts"\n', "contracts/a.toml": endpoint("/a")})
    deployment, findings = read_deployment(tmp_path / "other.toml")
    assert findings == []
    assert paths(deployment) == ["/a"]
    assert deployment.root == tmp_path


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
    assert finding.location is not None
    assert finding.location.file.endswith("b.toml")
    assert len(deployment.endpoints) == 1


def test_the_same_path_with_another_method_is_another_endpoint(tmp_path: Path) -> None:
    files = {"bespeak.toml": SERVER, "endpoints/a.toml": endpoint("/x"), "endpoints/b.toml": endpoint("/x", "CANCEL")}
    assert read_deployment(write(tmp_path, files))[1] == []


def test_a_broken_file_leaves_the_others(tmp_path: Path) -> None:
    files = {
        "bespeak.toml": SERVER,
        "endpoints/a.toml": "[endpoint",
        "endpoints/b.toml": "x = 1\n",
        "endpoints/c.toml": endpoint("/c"),
        "agents/bad.json": "{",
        "agents/good.json": agent("2"),
    }
    deployment, findings = read_deployment(write(tmp_path, files))
    assert paths(deployment) == ["/c"]
    assert [found.name for found in deployment.agents] == ["2"]
    assert rules(findings) == ["D102", "D103", "D102"]


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


def test_recipes_are_found_beside_the_endpoints_too(tmp_path: Path) -> None:
    files = {"bespeak.toml": SERVER, "endpoints/a.toml": endpoint("/a"), "endpoints/agtp-recipes.toml": RECIPE}
    deployment, findings = read_deployment(write(tmp_path, files))
    assert findings == []
    assert len(deployment.recipes) == 1


def test_a_recipe_file_that_was_named_must_exist(tmp_path: Path) -> None:
    files = {"bespeak.toml": SERVER + 'recipes = "mine.toml"\n', "a.toml": endpoint("/a")}
    assert rules(read_deployment(write(tmp_path, files))[1]) == ["D101"]


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
