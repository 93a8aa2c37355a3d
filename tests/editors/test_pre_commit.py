"""The pre-commit hooks: their commands exist, and they match only bespeak's files."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.process import ROOT, bespeak

HOOKS: dict[str, dict[str, Any]] = {
    hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
}
ROOMS = (ROOT / "docs_src/lint/rooms.agis").read_text("utf-8")


def run(hook: str, *files: str, cwd: Path) -> int:
    program, *arguments = shlex.split(HOOKS[hook]["entry"])
    assert program == "bespeak"
    return bespeak(*arguments, *files, cwd=cwd).returncode


@pytest.mark.parametrize(
    ("name", "hooks"),
    [
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
    ],
)
def test_hooks_only_match_bespeak_documents(name: str, hooks: set[str]) -> None:
    assert {hook for hook, entry in HOOKS.items() if re.search(entry["files"], name)} == hooks


@pytest.mark.process
def test_findings_fail_the_hook(tmp_path: Path) -> None:
    (tmp_path / "rooms.agis").write_text(ROOMS)
    assert run("bespeak-lint", "rooms.agis", cwd=tmp_path) == 1


@pytest.mark.process
def test_formatted_file_passes_the_hook(tmp_path: Path) -> None:
    file = tmp_path / "rooms.agis"
    file.write_text(ROOMS)
    assert run("bespeak-format", "rooms.agis", cwd=tmp_path) == 0
    written = file.read_text()
    assert written != ROOMS
    assert run("bespeak-format", "rooms.agis", cwd=tmp_path) == 0
    assert file.read_text() == written
