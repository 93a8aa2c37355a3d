"""`bespeak init`: what it writes can be served, checked and tested, and nothing is overwritten."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import httpx
import pytest
from tests.app.cli.invoking import invoking
from tests.cases import rows
from tests.process import ROOT, bespeak, serving

from bespeak.app.cli.init import EXAMPLES, init
from bespeak.app.cli.serve import serve
from bespeak.errors import ConfigError

run = invoking(init, raises=True)
FILES = {".gitignore", "Dockerfile", "README.md", "bespeak.toml", "service.py", "test_service.py"}


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()}


@rows("name, server_id", ("cinema", "cinema.example"), ("My_Cinema-2_", "my-cinema-2.example"))
def test_a_service_is_written_under_its_name(tmp_path: Path, name: str, server_id: str) -> None:
    assert f"bespeak serve {tmp_path / name}" in run(tmp_path / name, code=0).output
    files = contents(tmp_path / name)
    assert set(files) == FILES
    assert "starter" not in "".join(files.values())
    assert f'server_id="{server_id}"' in files["service.py"]
    assert re.findall(r'impact="(\w+)"', files["service.py"]) == ["informational", "irreversible"]


@pytest.mark.process
def test_the_service_lints_clean_and_passes_its_test(tmp_path: Path) -> None:
    run(tmp_path / "cinema", code=0)
    checked = bespeak("lint", str(tmp_path / "cinema"))
    assert (checked.returncode, "nothing found" in checked.stdout) == (0, True), checked.stdout
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "-c", os.devnull, "."],
        cwd=tmp_path / "cinema",
        capture_output=True,
        text=True,
        check=False,
    )
    assert "3 passed" in tested.stdout, tested.stdout


@pytest.mark.process
def test_the_service_is_served_without_a_warning_and_shown_to_a_browser(tmp_path: Path) -> None:
    run(tmp_path / "cinema", code=0)
    with serving(tmp_path / "cinema", "--http", "127.0.0.1:0") as server:
        assert httpx.get(f"{server.url}/seats:query", params={"row": "B"}).json() == {"seats": {"B1": 900}}
        page = httpx.get(server.url, headers={"Accept": "text/html"})
        assert "<h1>Harbour Cinema</h1>" in page.text
        agent = {"Authority-Scope": "tickets:buy", "Agent-ID": "ab" * 32}
        waiting = httpx.post(f"{server.url}/ticket:purchase", json={"seat": "A1"}, headers=agent)
        assert (waiting.headers["agtp-status"], "confirmation-required" in waiting.text) == ("262", True)
        server.stop()
        assert server.process.stderr is not None
        assert server.process.stderr.read() == ""


def test_the_commands_of_the_image_are_valid(tmp_path: Path) -> None:
    run(tmp_path / "cinema", code=0)
    lines = (tmp_path / "cinema" / "Dockerfile").read_text("utf-8").splitlines()
    words = [
        word.strip(' "') for line in lines if line.startswith(("ENTRYPOINT", "CMD")) for word in _words(line).split(",")
    ]
    assert words[:2] == ["bespeak", "serve"]
    assert serve.make_context("serve", words[2:]).params["target"] == "/service"
    copied = next(line for line in lines if line.startswith("COPY bespeak.toml"))
    assert set(copied.split()[1:-1]) <= FILES


def _words(line: str) -> str:
    return line[line.index("[") + 1 : line.rindex("]")]


@pytest.mark.parametrize("name", ["", ".", "..", "/", "9lives", "a b", "-x", "é", "a\nb", "a" * 41, "a/../..", "a.b"])
def test_a_name_that_is_not_valid_is_refused_with_what_is(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("--", name, code=2)
    assert "use at most 40 letters, digits, - and _" in result.output
    assert "bespeak init cinema" in result.output
    assert list(tmp_path.iterdir()) == []


def test_what_exists_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "folder", "link"):
        for options in ((), ("--example", "hotel")):
            with pytest.raises(ConfigError, match=rf"{name} already exists.*Choose another name"):
                run(tmp_path / name, *options)
    with pytest.raises(ConfigError, match="cannot be written: "):
        run(tmp_path / "file" / "below")
    assert contents(tmp_path) == {"file": "mine"}


@pytest.mark.process
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_copied_without_what_a_run_leaves_behind(tmp_path: Path, name: str) -> None:
    run(tmp_path / "mine", "--example", name, code=0)
    kept = subprocess.run(
        ["git", "ls-files", f"examples/{name}"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert set(contents(tmp_path / "mine")) == {file.removeprefix(f"examples/{name}/") for file in kept}
    assert bespeak("lint", str(tmp_path / "mine")).returncode == 0


def test_every_example_can_be_copied_and_the_extra_all_has_every_extra() -> None:
    assert {path.name for path in (ROOT / "examples").iterdir() if path.is_dir()} == set(EXAMPLES)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    [everything] = extras.pop("all")
    assert everything == f"bespeak[{','.join(sorted(extras))}]"


def test_an_installation_without_examples_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.app.cli.init._SOURCE", tmp_path)
    with pytest.raises(ConfigError, match="no examples"):
        run(tmp_path / "hotel", "--example", "hotel")


@pytest.mark.process
def test_a_wheel_alone_has_what_init_writes(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run(build, check=True, capture_output=True, cwd=ROOT)
    [wheel] = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    for words, own in ((("cinema",), "service.py"), (("hotel", "--example", "hotel"), "endpoints/book-room.toml")):
        subprocess.run(
            [sys.executable, "-m", "bespeak", "init", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")},
            check=True,
            capture_output=True,
        )
        assert (tmp_path / words[0] / own).is_file()
