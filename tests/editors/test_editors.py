"""Integrations: pre-commit, the GitHub action and the extension for VS Code."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cases import rows
from tests.process import ROOT, bespeak

from bespeak.app.lsp.server import FIX_ALL
from bespeak.documents.schemas import SCHEMAS, schema_text

HOOKS: dict[str, dict[str, Any]] = {
    hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
}
ROOMS = (ROOT / "docs_src/lint/rooms.agis").read_text("utf-8")


def run(hook: str, *files: str, cwd: Path) -> int:
    program, *arguments = shlex.split(HOOKS[hook]["entry"])
    assert program == "bespeak"
    return bespeak(*arguments, *files, cwd=cwd).returncode


@rows(
    "name, hooks",
    ("rooms.agis", {"bespeak-lint", "bespeak-format"}),
    ("deep/down/rooms.agis", {"bespeak-lint", "bespeak-format"}),
    ("bespeak.toml", {"bespeak-lint"}),
    ("library/agtp-recipes.toml", {"bespeak-lint"}),
    ("library/endpoints/a/book.toml", {"bespeak-lint"}),
    ("site/.well-known/ai", {"bespeak-lint"}),
    ("pyproject.toml", set()),
    ("package.json", set()),
    ("rooms.agis.bak", set()),
    ("notbespeak.toml", set()),
)
def test_hooks_only_match_bespeak_documents(name: str, hooks: set[str]) -> None:
    assert {hook for hook, entry in HOOKS.items() if re.search(entry["files"], name)} == hooks


@pytest.mark.process
def test_findings_fail_the_hook_and_a_formatted_file_passes(tmp_path: Path) -> None:
    (tmp_path / "rooms.agis").write_text(ROOMS)
    assert run("bespeak-lint", "rooms.agis", cwd=tmp_path) == 1
    file = tmp_path / "rooms.agis"
    file.write_text(ROOMS)
    assert run("bespeak-format", "rooms.agis", cwd=tmp_path) == 0
    written = file.read_text()
    assert written != ROOMS
    assert run("bespeak-format", "rooms.agis", cwd=tmp_path) == 0
    assert file.read_text() == written


ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]


def step(name: str) -> dict[str, Any]:
    return next(entry for entry in STEPS if entry.get("name") == name)


def environment(name: str, **inputs: str) -> dict[str, str]:
    """Return the variables of a step, with the given inputs or the defaults."""
    given = {key: entry["default"] for key, entry in ACTION["inputs"].items()}
    given |= {key.replace("_", "-"): value for key, value in inputs.items()}
    values = {f"inputs.{key}": value for key, value in given.items()} | {"github.action_path": "/the/action"}
    return {key: re.sub(r"\$\{\{ (.*?) \}\}", lambda m: values[m[1]], text) for key, text in step(name)["env"].items()}


def check(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step("Check contracts")["run"]],
        cwd=folder,
        env={"PATH": path, "NO_COLOR": "1", "GITHUB_ACTIONS": "true", **environment("Check contracts", **inputs)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.process
def test_findings_fail_the_step_and_inputs_are_applied(tmp_path: Path) -> None:
    (tmp_path / "rooms.agis").write_text(ROOMS)
    done = check(tmp_path)
    assert done.returncode == 1, done.stderr
    assert "::error file=rooms.agis" in done.stdout
    report = json.loads((tmp_path / "bespeak.sarif").read_text())
    assert report["version"] == "2.1.0"
    assert "M211" in {result["ruleId"] for result in report["runs"][0]["results"]}
    (tmp_path / "a.agis").write_text(ROOMS)
    (tmp_path / "b.agis").write_text(ROOMS)
    done = check(tmp_path, paths="a.agis\nb.agis", args="--select J638 --format concise", sarif="out.sarif")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("J638") == 2
    assert (tmp_path / "out.sarif").is_file()
    assert check(tmp_path, args="--select J638", fail_on="info").returncode == 1


@pytest.mark.process
@pytest.mark.parametrize("paths", ["$(touch made)", "; touch made", "`touch made`", "*"])
def test_no_input_becomes_a_command_or_a_pattern(tmp_path: Path, paths: str) -> None:
    assert check(tmp_path, paths=paths).returncode == 2
    assert not (tmp_path / "made").exists()


@pytest.mark.process
@pytest.mark.parametrize(("version", "installed"), [("", "/the/action"), ("0.1.0", "bespeak==0.1.0")])
def test_requested_version_is_installed(version: str, installed: str) -> None:
    script = step("Install bespeak")["run"].replace("python -m pip install", "echo")
    done = subprocess.run(
        ["bash", "-c", script],
        env=environment("Install bespeak", version=version),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split()[-1] == installed


def test_every_input_is_described_and_used_but_never_written_into_a_script() -> None:
    text = json.dumps(STEPS)
    assert [name for name in ACTION["inputs"] if f"inputs.{name}" not in text] == []
    assert all(entry["description"] for entry in ACTION["inputs"].values())
    assert ACTION["outputs"]["sarif"]["value"] == "${{ inputs.sarif }}"
    assert [entry["run"] for entry in STEPS if "${{" in entry.get("run", "")] == []


FOLDER = ROOT / "editors" / "vscode"
PACKAGE: dict[str, Any] = json.loads((FOLDER / "package.json").read_text("utf-8"))
GRAMMAR: dict[str, Any] = json.loads((FOLDER / "syntaxes" / "agis.tmLanguage.json").read_text("utf-8"))
SCRIPT = (FOLDER / "extension.js").read_text("utf-8")


def texts(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, str):
        yield value


def patterns(value: object) -> Iterator[dict[str, Any]]:
    """Return the rules of a grammar that have an expression."""
    if isinstance(value, dict):
        if "match" in value:
            yield value
        for item in value.values():
            yield from patterns(item)
    elif isinstance(value, list):
        for item in value:
            yield from patterns(item)


def tokens(line: str, scope: str) -> list[str]:
    """Return the parts of a line that the grammar gives a scope."""
    found = []
    for rule in patterns(GRAMMAR["repository"]):
        for match in re.finditer(rule["match"], line):
            found += [
                match[int(number)] for number, capture in rule.get("captures", {}).items() if capture["name"] == scope
            ]
    return found


def test_files_schema_settings_and_commands_of_the_extension_match_the_package() -> None:
    named = [text for text in texts(PACKAGE) if text.startswith("./")]
    assert len(named) >= 4
    assert [name for name in named if not (FOLDER / name).is_file()] == []
    assert (FOLDER / "LICENSE").read_text("utf-8") == (ROOT / "LICENSE").read_text("utf-8")
    assert PACKAGE["version"] in (FOLDER / "CHANGELOG.md").read_text("utf-8")
    assert f'\nversion = "{PACKAGE["version"]}"\n' in (ROOT / "pyproject.toml").read_text("utf-8")
    assert {"node_modules/", "*.vsix"} <= set((FOLDER / ".gitignore").read_text("utf-8").splitlines())
    assert FIX_ALL in (FOLDER / "README.md").read_text("utf-8")
    file = SCHEMAS["agis"].file
    assert (FOLDER / "schemas" / file).read_text("utf-8") == schema_text("agis")
    for kind in ("jsonValidation", "yamlValidation"):
        (entry,) = PACKAGE["contributes"][kind]
        assert (entry["fileMatch"], entry["url"]) == ("*.agis", f"./schemas/{file}")
    settings = PACKAGE["contributes"]["configuration"]["properties"]
    used = re.findall(r'getConfiguration\("bespeak"\)\.get\("(\w+)"\)', SCRIPT)
    assert used
    assert {f"bespeak.{name}" for name in used} <= set(settings)
    commands = {entry["command"] for entry in PACKAGE["contributes"]["commands"]}
    assert commands == set(re.findall(r'registerCommand\("([\w.]+)"', SCRIPT))
    assert set(PACKAGE["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]) <= set(settings)
    needed = {name.partition("/")[0] for name in re.findall(r'require\("([^"]+)"\)', SCRIPT)}
    assert needed - {"vscode"} == set(PACKAGE["dependencies"])


def test_every_rule_of_the_grammar_is_reached_and_can_be_read() -> None:
    included = {text.removeprefix("#") for text in texts(GRAMMAR) if text.startswith("#")}
    assert included == set(GRAMMAR["repository"])
    rules = list(patterns(GRAMMAR["repository"]))
    assert len(rules) == len(GRAMMAR["repository"])
    for rule in rules:
        groups = re.compile(rule["match"]).groups
        assert all(int(number) <= groups for number in rule.get("captures", {}))


@rows(
    "line, scope, found",
    ("  BOOK /room/{id} {", "entity.name.function.method.agis", ["BOOK"]),
    ("  BOOK /room/{id} {", "string.unquoted.path.agis", ["/room/{id}"]),
    ("  - method: BOOK", "entity.name.function.method.agis", ["BOOK"]),
    ('    "method": "BOOK",', "entity.name.function.method.agis", ["BOOK"]),
    ("    path: /room/{id}", "string.unquoted.path.agis", ["/room/{id}"]),
    ("    semantic {", "entity.name.tag.agis", ["semantic"]),
    ("      actor: agent", "support.constant.agis", ["agent"]),
    ("  input { required: [evening (date)]", "support.type.agis", ["date"]),
    ("  status: FREE -> BOOKED", "constant.other.state.agis", ["FREE", "BOOKED"]),
    ("path: /x  # bespeak: ignore[P302] why", "constant.other.rule.agis", ["P302"]),
    ('  intent: "Books a room (or two)"', "support.type.agis", []),
    ("  - description: /room {", "entity.name.function.method.agis", []),
)
def test_tokens_have_the_expected_colours(line: str, scope: str, found: list[str]) -> None:
    assert tokens(line, scope) == found
