"""The action for GitHub: its steps run here as they run there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.process import ROOT

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
ROOMS = (ROOT / "docs_src/lint/rooms.agis").read_text("utf-8")


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
def test_findings_fail_the_step_and_are_in_the_report(tmp_path: Path) -> None:
    (tmp_path / "rooms.agis").write_text(ROOMS)
    done = check(tmp_path)
    assert done.returncode == 1, done.stderr
    assert "::error file=rooms.agis" in done.stdout
    report = json.loads((tmp_path / "bespeak.sarif").read_text())
    assert report["version"] == "2.1.0"
    assert "M211" in {result["ruleId"] for result in report["runs"][0]["results"]}


@pytest.mark.process
def test_inputs_are_applied(tmp_path: Path) -> None:
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
    done = check(tmp_path, paths=paths)
    assert done.returncode == 2
    assert not (tmp_path / "made").exists()


def test_no_input_is_written_into_a_script() -> None:
    assert [entry["run"] for entry in STEPS if "${{" in entry.get("run", "")] == []


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


def test_every_input_is_used_and_described() -> None:
    text = json.dumps(STEPS)
    assert [name for name in ACTION["inputs"] if f"inputs.{name}" not in text] == []
    assert all(entry["description"] for entry in ACTION["inputs"].values())
    assert ACTION["outputs"]["sarif"]["value"] == "${{ inputs.sarif }}"
