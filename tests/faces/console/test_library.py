"""What the page of the console computes without a page, run by Node; and the code of others that it ships."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.node import PROGRAMS
from tests.process import ROOT

from tools import vendor

STATIC = ROOT / "src/bespeak/faces/console/static"
NODE = PROGRAMS / "node" if (PROGRAMS / "node").exists() else shutil.which("node")
OLDEST = (20, 19)  # the first that reads modules without a package.json


def node_is_new_enough() -> bool:
    if NODE is None:
        return False
    told = subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(map(int, told.strip("v\n").split(".")[:2])) >= OLDEST


@pytest.mark.process
def test_the_functions_of_the_page_pass_their_own_tests() -> None:
    if not node_is_new_enough():
        pytest.skip("Node 20.19 or newer is not installed: run `make node`")
    files = sorted(map(str, Path(__file__).parent.glob("*.test.js")))
    assert NODE is not None
    assert files
    env = {**os.environ, "NODE_NO_WARNINGS": "1"}
    ended = subprocess.run([NODE, "--test", *files], capture_output=True, text=True, timeout=100, env=env, check=False)
    assert ended.returncode == 0, ended.stdout[-8000:]


def test_vendored_files_are_the_published_ones() -> None:
    assert vendor.check() == []


def test_a_changed_vendored_file_is_found(tmp_path: Path) -> None:
    shutil.copytree(vendor.FOLDER, tmp_path / "vendor")
    with (tmp_path / "vendor/htm.mjs").open("a") as file:
        file.write("//")
    (tmp_path / "vendor/more.mjs").write_text("")
    assert [one.split(":")[0] for one in vendor.check(tmp_path / "vendor")] == ["htm.mjs", "more.mjs"]


def test_the_page_never_writes_html_nor_evaluates_text() -> None:
    for file in STATIC.joinpath("app").rglob("*.js"):
        source = file.read_text("utf-8")
        for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "new Function", "style="):
            assert forbidden not in source, f"{file.name}: {forbidden}"
        assert len(source.splitlines()) <= 200, file.name
