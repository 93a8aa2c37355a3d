"""The extension for VS Code: the files and names it refers to exist, and it matches the package."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.process import ROOT

from bespeak.app.lsp.code_actions import FIX_ALL
from bespeak.documents.schemas import SCHEMAS, schema_text

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


def test_every_file_named_by_the_extension_exists() -> None:
    named = [text for text in texts(PACKAGE) if text.startswith("./")]
    assert len(named) >= 4
    assert [name for name in named if not (FOLDER / name).is_file()] == []
    assert (FOLDER / "LICENSE").read_text("utf-8") == (ROOT / "LICENSE").read_text("utf-8")
    assert PACKAGE["version"] in (FOLDER / "CHANGELOG.md").read_text("utf-8")


def test_the_extension_has_the_version_of_the_package() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text("utf-8")
    assert f'\nversion = "{PACKAGE["version"]}"\n' in pyproject


def test_schema_equals_that_of_the_package() -> None:
    file = SCHEMAS["agis"].file
    assert (FOLDER / "schemas" / file).read_text("utf-8") == schema_text("agis")
    for kind in ("jsonValidation", "yamlValidation"):
        (entry,) = PACKAGE["contributes"][kind]
        assert (entry["fileMatch"], entry["url"]) == ("*.agis", f"./schemas/{file}")


def test_settings_and_commands_match_the_script() -> None:
    settings = PACKAGE["contributes"]["configuration"]["properties"]
    used = re.findall(r'getConfiguration\("bespeak"\)\.get\("(\w+)"\)', SCRIPT)
    assert used
    assert {f"bespeak.{name}" for name in used} <= set(settings)
    commands = {entry["command"] for entry in PACKAGE["contributes"]["commands"]}
    assert commands == set(re.findall(r'registerCommand\("([\w.]+)"', SCRIPT))
    assert set(PACKAGE["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]) <= set(settings)


def test_the_script_needs_only_what_is_installed_with_it() -> None:
    needed = {name.partition("/")[0] for name in re.findall(r'require\("([^"]+)"\)', SCRIPT)}
    assert needed - {"vscode"} == set(PACKAGE["dependencies"])


def test_readme_names_the_fix_action() -> None:
    assert FIX_ALL in (FOLDER / "README.md").read_text("utf-8")


def test_every_rule_of_the_grammar_is_reached_and_can_be_read() -> None:
    included = {text.removeprefix("#") for text in texts(GRAMMAR) if text.startswith("#")}
    assert included == set(GRAMMAR["repository"])
    rules = list(patterns(GRAMMAR["repository"]))
    assert len(rules) == len(GRAMMAR["repository"])
    for rule in rules:
        groups = re.compile(rule["match"]).groups
        assert all(int(number) <= groups for number in rule.get("captures", {}))


@pytest.mark.parametrize(
    ("line", "scope", "found"),
    [
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
    ],
)
def test_tokens_have_the_expected_colours(line: str, scope: str, found: list[str]) -> None:
    assert tokens(line, scope) == found


def test_build_output_is_ignored_by_git() -> None:
    ignored = (FOLDER / ".gitignore").read_text("utf-8").splitlines()
    assert {"node_modules/", "*.vsix"} <= set(ignored)
