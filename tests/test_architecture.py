"""What holds for the repository as a whole: layers that say the same everywhere, few and deep modules."""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cases import rows

import bespeak

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "bespeak"
MODULES = sorted(
    str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if path.name not in ("__init__.py", "__main__.py")
)

MOST_LINES = 700
WEB = {"httptools", "httpx", "starlette", "uvicorn"}  # libraries that only web clients and servers need


def test_no_module_is_too_long_to_read() -> None:
    lengths = {module: len((SOURCE / module).read_text("utf-8").splitlines()) for module in MODULES}
    assert {module: length for module, length in lengths.items() if length > MOST_LINES} == {}


def test_modules_are_few_and_deep() -> None:
    lengths = [len((SOURCE / module).read_text("utf-8").splitlines()) for module in MODULES]
    assert len(lengths) <= 600
    assert statistics.median(lengths) >= 140


def test_the_kernel_can_be_seen_at_once() -> None:
    assert len(list((SOURCE / "runtime").glob("[!_]*.py"))) <= 20


def test_no_module_has_a_meaningless_name() -> None:
    empty = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
    assert [module for module in MODULES if empty & set(Path(module).with_suffix("").parts)] == []


def test_the_architecture_page_describes_each_package_in_its_own_words() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    for package in sorted(path.parent for path in SOURCE.glob("*/__init__.py")):
        line = (package / "__init__.py").read_text("utf-8").splitlines()[0].strip('"')
        assert f"| `{package.name}` | {line} |" in page


@pytest.mark.process
def test_importing_bespeak_imports_few_modules() -> None:
    code = "import sys; before = set(sys.modules); import bespeak; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"asyncio", "click", "cryptography", "msgspec", "rich", "ssl", *WEB}
    assert heavy & {name.partition(".")[0] for name in done.stdout.split()} == set()


@pytest.mark.process
@rows(
    "arguments",
    *(["--help"], ["serve", "--help"], ["call", "--help"], ["discover", "--help"], ["import", "openapi", "--help"]),
    *(["lint", "examples/hotel/endpoints/book-room.toml"], ["export", "ai", "examples/hotel"]),
    ids=" ".join,
)
def test_commands_load_web_modules_and_the_server_only_when_needed(arguments: list[str]) -> None:
    unneeded = {*WEB, *(() if arguments[0] in ("serve", "export") else ("bespeak.runtime.dispatcher",))}
    code = (
        "import atexit, sys; from bespeak.app.cli.main import main; "
        f"atexit.register(lambda: print('loaded', *({unneeded!r} & sys.modules.keys()), file=sys.stderr)); main()"
    )
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stderr.splitlines()[-1] == "loaded"


@pytest.mark.parametrize("name", bespeak.__all__)
def test_every_public_name_can_be_imported_and_has_a_docstring(name: str) -> None:
    assert getattr(bespeak, name).__doc__


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Serice'"):
        bespeak.Serice  # noqa: B018


def tracked() -> list[Path]:
    """Return the files of the repository; outside of git, those that would be tracked."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        found = [ROOT / name for name in done.stdout.split("\0") if name]
        return [path for path in found if path.is_file()]
    folders = ("src", "tests", "docs", "docs_src", "examples", "bench", "tools", "specs")
    return [path for folder in folders for path in (ROOT / folder).rglob("*.*") if path.suffix != ".pyc"]


@pytest.mark.process
def test_no_file_has_todos_or_machine_paths() -> None:
    # Put together here, so that this file is not found by itself.
    unfinished = "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X"))
    machines = "|".join(
        ("/ho" + "me/", "/ro" + "ot/", "/wo" + "rk/", "/Us" + "ers/", "//py" + "pi", "arti" + "factory")
    )
    wrong = re.compile(rf"\b(?:{unfinished})\b|(?:{machines})")
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in tracked()
        if path.suffix not in (".lock", ".png") and (match := wrong.search(path.read_text("utf-8", errors="replace")))
    ]
    assert found == []


def test_continuous_integration_runs_the_command_of_the_readme() -> None:
    *_, command = (ROOT / ".ci" / "run").read_text().strip().split("\n")
    assert re.search(rf"^{command} +#", (ROOT / "README.md").read_text(), re.MULTILINE)
