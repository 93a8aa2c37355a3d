"""What holds for the repository as a whole: layers that say the same everywhere, small modules, a test for each."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import bespeak

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "bespeak"
MODULES = sorted(
    str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if path.name not in ("__init__.py", "__main__.py")
)

MOST_LINES = 600
WEB = {"httptools", "httpx", "starlette", "uvicorn"}
"""Libraries that only web clients and servers need."""

TESTED_ELSEWHERE = {
    # A module or a folder, and the tests that show what it does. Entries may go, and none may come: a new module
    # has a test module of its own.
    "app/cli/conform.py": "app/conformance/test_command.py",
    "app/cli/console.py": "app/cli/test_call.py",
    "app/cli/serve.py": "app/server/test_serving.py",
    "app/conformance/check.py": "app/conformance/test_report.py",
    "app/conformance/checks": "app/conformance/test_run.py",
    "app/conformance/direct.py": "app/conformance/test_run.py",
    "app/conformance/probe.py": "app/conformance/test_run.py",
    "app/conformance/subject.py": "app/conformance/test_run.py",
    "app/server/lifecycle.py": "app/server/test_serving.py",
    "contract": "checks/lint/test_registration.py",
    "documents/deployment/endpoint_shape.py": "documents/deployment/test_endpoint_toml.py",
    "documents/deployment/folder.py": "documents/deployment/test_deployment.py",
    "documents/deployment/handler_shape.py": "documents/deployment/test_endpoint_toml.py",
    "text/reading/json_text.py": "documents/test_manifest_json.py",
    "documents/projections/agtp_manifest.py": "runtime/methods/test_discover.py",
    "documents/projections/method_inventory.py": "runtime/methods/test_discover.py",
    "text/reading/table.py": "documents/deployment/test_endpoint_toml.py",
    "errors.py": "app/authoring/test_app.py",
    "faces/timeouts.py": "faces/agtp/test_connection.py",
    "protocol/exchange/context.py": "runtime/functions/test_calling.py",
    "protocol/exchange/handler.py": "agent/client/test_in_process.py",
    "protocol/exchange/messages.py": "runtime/test_dispatcher.py",
    "protocol/exchange/principal.py": "runtime/test_principals.py",
    "protocol/exchange/refusal.py": "runtime/test_gates.py",
    "protocol/wire/abnf.py": "protocol/wire/test_head.py",
    "protocol/wire/limits.py": "protocol/wire/test_reader.py",
    "protocol/wire/messages.py": "protocol/wire/test_reader.py",
    "runtime/advisories.py": "runtime/test_dispatcher.py",
    "runtime/answer.py": "runtime/test_dispatcher.py",
    "runtime/bindings/function.py": "runtime/test_registration.py",
    "runtime/call.py": "runtime/test_gates.py",
    "runtime/gates": "runtime/test_gates.py",
    "runtime/methods/builtin.py": "runtime/methods/test_discover.py",
    "runtime/methods/floor.py": "runtime/methods/test_discover.py",
    "runtime/route_table.py": "runtime/test_registration.py",
    "text/diagnostics/brief.py": "text/reading/test_findings.py",
    "text/diagnostics/diagnostic.py": "text/reading/test_findings.py",
    "text/source/brace_edit.py": "text/source/test_edit.py",
    "text/source/brace_reader.py": "text/source/test_brace_tree.py",
    "text/source/brace_value.py": "text/source/test_brace_tree.py",
    "text/source/change.py": "text/source/test_edit.py",
    "text/source/flow_edit.py": "text/source/test_edit.py",
    "text/source/json_places.py": "text/source/test_json_tree.py",
    "text/source/place_edit.py": "text/source/test_edit.py",
    "text/source/span.py": "text/source/test_toml_tree.py",
    "text/source/toml_places.py": "text/source/test_toml_tree.py",
    "text/source/tree.py": "text/source/test_yaml_tree.py",
    "text/source/yaml_data.py": "text/source/test_yaml_tree.py",
    "text/source/yaml_edit.py": "text/source/test_edit.py",
    "text/source/yaml_fault.py": "text/source/test_yaml_tree.py",
}


def own_test(module: str) -> Path:
    path = Path(module)
    return ROOT / "tests" / path.parent / f"test_{path.name}"


def entry_for(module: str) -> str | None:
    """Return the list entry for a module: its own, or that of its folder."""
    return next((name for name in (module, str(Path(module).parent)) if name in TESTED_ELSEWHERE), None)


def test_every_module_has_its_tests() -> None:
    missing = [m for m in MODULES if not own_test(m).is_file() and entry_for(m) is None]
    assert [f"write {own_test(module).relative_to(ROOT)}" for module in missing] == []


def test_the_list_of_modules_tested_elsewhere_only_shrinks() -> None:
    needed = {entry_for(module) for module in MODULES if not own_test(module).is_file()}
    assert set(TESTED_ELSEWHERE) - needed == set(), "these have a test module of their own, or are gone"
    assert {test for test in TESTED_ELSEWHERE.values() if not (ROOT / "tests" / test).is_file()} == set()


def test_no_module_is_too_long_to_read() -> None:
    lengths = {module: len((SOURCE / module).read_text("utf-8").splitlines()) for module in MODULES}
    assert {module: length for module, length in lengths.items() if length > MOST_LINES} == {}


def test_there_are_at_most_ten_rooms() -> None:
    assert len(list(SOURCE.glob("*/__init__.py"))) <= 10


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
@pytest.mark.parametrize(
    "arguments",
    [
        *(["--help"], ["serve", "--help"], ["call", "--help"], ["discover", "--help"], ["import", "openapi", "--help"]),
        *(["lint", "examples/hotel/endpoints/book-room.toml"], ["export", "ai", "examples/hotel"]),
    ],
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
    folders = ("src", "tests", "docs", "docs_src", "examples", "bench", "fuzz", "specs")
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
        if path.suffix != ".lock" and (match := wrong.search(path.read_text("utf-8", errors="replace")))
    ]
    assert found == []


def test_continuous_integration_runs_the_command_of_the_readme() -> None:
    *_, command = (ROOT / ".ci" / "run").read_text().strip().split("\n")
    assert re.search(rf"^{command} +#", (ROOT / "README.md").read_text(), re.MULTILINE)
