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

MOST_LINES = 500
WEB = {"httptools", "httpx", "starlette", "uvicorn"}
"""Libraries that only those need who ask or serve on the web."""

TESTED_ELSEWHERE = {
    # A module or a folder, and the tests that show what it does. Entries may go, and none may come: a new module
    # has a test module of its own.
    "cli/conform.py": "conformance/test_command.py",
    "cli/console.py": "cli/test_call.py",
    "cli/serve.py": "server/test_serving.py",
    "conformance/check.py": "conformance/test_report.py",
    "conformance/checks": "conformance/test_run.py",
    "conformance/direct.py": "conformance/test_run.py",
    "conformance/probe.py": "conformance/test_run.py",
    "conformance/subject.py": "conformance/test_run.py",
    "contract": "lint/test_registration.py",
    "diagnostics/brief.py": "documents/test_findings.py",
    "diagnostics/diagnostic.py": "documents/test_findings.py",
    "documents/endpoint_shape.py": "documents/test_endpoint_toml.py",
    "documents/folder.py": "documents/test_deployment.py",
    "documents/handler_shape.py": "documents/test_endpoint_toml.py",
    "documents/json_text.py": "documents/test_manifest_json.py",
    "documents/policy_shape.py": "documents/test_server_toml.py",
    "documents/table.py": "documents/test_endpoint_toml.py",
    "errors.py": "authoring/test_app.py",
    "exchange/context.py": "authoring/test_calling.py",
    "exchange/handler.py": "transports/test_in_process.py",
    "exchange/messages.py": "runtime/test_dispatcher.py",
    "exchange/principal.py": "runtime/test_principals.py",
    "exchange/refusal.py": "runtime/test_gates.py",
    "methods/builtin.py": "methods/test_discover.py",
    "methods/floor.py": "methods/test_discover.py",
    "projections/agtp_manifest.py": "methods/test_discover.py",
    "projections/method_inventory.py": "methods/test_discover.py",
    "runtime/advisories.py": "runtime/test_dispatcher.py",
    "runtime/answer.py": "runtime/test_dispatcher.py",
    "runtime/bindings/function.py": "runtime/test_registration.py",
    "runtime/call.py": "runtime/test_gates.py",
    "runtime/gates": "runtime/test_gates.py",
    "runtime/registry.py": "runtime/test_registration.py",
    "server/lifecycle.py": "server/test_serving.py",
    "server/local.py": "cli/test_call.py",
    "server/workers.py": "server/test_serving.py",
    "source/brace_edit.py": "source/test_edit.py",
    "source/brace_reader.py": "source/test_brace_tree.py",
    "source/brace_value.py": "source/test_brace_tree.py",
    "source/change.py": "source/test_edit.py",
    "source/flow_edit.py": "source/test_edit.py",
    "source/json_edit.py": "source/test_edit.py",
    "source/json_places.py": "source/test_json_tree.py",
    "source/refused.py": "source/test_yaml_tree.py",
    "source/span.py": "source/test_toml_tree.py",
    "source/toml_edit.py": "source/test_edit.py",
    "source/toml_places.py": "source/test_toml_tree.py",
    "source/tree.py": "source/test_yaml_tree.py",
    "source/yaml_data.py": "source/test_yaml_tree.py",
    "source/yaml_edit.py": "source/test_edit.py",
    "source/yaml_fault.py": "source/test_yaml_tree.py",
    "source/yaml_loader.py": "source/test_yaml_tree.py",
    "status.py": "docs/test_documents.py",
    "transports/timeouts.py": "transports/test_agtp_connection.py",
    "transports/translation.py": "transports/test_agtp_connection.py",
    "wire/abnf.py": "wire/test_head.py",
    "wire/limits.py": "wire/test_reader.py",
    "wire/messages.py": "wire/test_reader.py",
}


def own_test(module: str) -> Path:
    path = Path(module)
    return ROOT / "tests" / path.parent / f"test_{path.name}"


def entry_for(module: str) -> str | None:
    """The entry of the list that speaks for a module: its own, or that of its folder."""
    return next((name for name in (module, str(Path(module).parent)) if name in TESTED_ELSEWHERE), None)


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_its_tests(module: str) -> None:
    test = own_test(module)
    assert test.is_file() or entry_for(module) is not None, f"write {test.relative_to(ROOT)}"


def test_the_list_of_modules_tested_elsewhere_only_shrinks() -> None:
    needed = {entry_for(module) for module in MODULES if not own_test(module).is_file()}
    assert set(TESTED_ELSEWHERE) - needed == set(), "these have a test module of their own, or are gone"
    assert {test for test in TESTED_ELSEWHERE.values() if not (ROOT / "tests" / test).is_file()} == set()


@pytest.mark.parametrize("module", MODULES)
def test_no_module_is_too_long_to_read(module: str) -> None:
    assert len((SOURCE / module).read_text("utf-8").splitlines()) <= MOST_LINES


def test_no_module_has_a_name_that_says_nothing() -> None:
    empty = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
    assert [module for module in MODULES if empty & set(Path(module).with_suffix("").parts)] == []


def test_the_architecture_page_describes_each_package_in_its_own_words() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    for package in sorted(path.parent for path in SOURCE.glob("*/__init__.py")):
        line = (package / "__init__.py").read_text("utf-8").splitlines()[0].strip('"')
        assert f"| `{package.name}` | {line} |" in page


def test_importing_bespeak_imports_next_to_nothing() -> None:
    code = "import sys; before = set(sys.modules); import bespeak; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"asyncio", "click", "cryptography", "msgspec", "rich", "ssl", *WEB}
    assert heavy & {name.partition(".")[0] for name in done.stdout.split()} == set()


@pytest.mark.parametrize(
    "arguments",
    [
        *(["--help"], ["serve", "--help"], ["call", "--help"], ["discover", "--help"], ["import", "openapi", "--help"]),
        *(["lint", "examples/hotel/endpoints/book-room.toml"], ["export", "ai", "examples/hotel"]),
    ],
    ids=" ".join,
)
def test_no_command_loads_the_web_before_it_asks_or_serves_there(arguments: list[str]) -> None:
    code = (
        "import atexit, sys; from bespeak.cli.main import main; "
        f"atexit.register(lambda: print('loaded', *({WEB!r} & sys.modules.keys()), file=sys.stderr)); main()"
    )
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stderr.splitlines()[-1] == "loaded"


@pytest.mark.parametrize("name", bespeak.__all__)
def test_every_public_name_can_be_had_and_is_described(name: str) -> None:
    assert getattr(bespeak, name).__doc__


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Serice'"):
        bespeak.Serice  # noqa: B018


def tracked() -> list[Path]:
    """The files of the repository; outside of git, those that would be."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        found = [ROOT / name for name in done.stdout.split("\0") if name]
        return [path for path in found if path.is_file()]
    folders = ("src", "tests", "docs", "docs_src", "examples", "bench", "fuzz", "specs")
    return [path for folder in folders for path in (ROOT / folder).rglob("*.*") if path.suffix != ".pyc"]


def test_nothing_is_left_for_later_and_nothing_names_a_machine() -> None:
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
