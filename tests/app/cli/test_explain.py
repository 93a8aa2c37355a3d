"""Test `bespeak explain`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.app.cli.invoking import invoking
from tests.cases import check_each

from bespeak.app.cli.explain import explain
from bespeak.checks.lint.rule_index import all_rules
from bespeak.text.diagnostics.diagnostic import Rule
from bespeak.text.diagnostics.report import page_of


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


run = invoking(explain)


def test_every_rule_is_explained() -> None:
    def check(rule: Rule) -> None:
        summary = page_of(rule).summary
        assert run(rule.id, code=0).output.startswith(f"{rule.id} {rule.name}\n\n{summary}\n")

    check_each(all_rules().values(), check, name=lambda rule: rule.id)


def test_rule_is_found_by_name_printed_as_json_and_suggested_if_unknown() -> None:
    assert run("method-name-in-path").output == run("P302").output
    assert "Rule 'P3O2' not found. Did you mean P302" in run("P3O2", code=2).output
    assert "for all rules" in run("qqqqqq").output
    data = json.loads(run("P302", "--format", "json").output)
    assert (data["id"], data["normative"], data["pass"]) == ("P302", "MUST", None)
    assert data["here"] == {"on": True, "severity": "error", "settings": None}
    assert len(json.loads(run("--format", "json").output)) == len(all_rules())


def test_changes_are_explained_by_id_and_by_name() -> None:
    text = run("C129").output
    assert text.startswith("C129 limit-tightened\n\n")
    assert "Why: For input, calls that worked are refused" in text
    assert run("limit-tightened").output == text
    assert json.loads(run("c129", "--format", "json").output)["category"] == "wire"
    assert run("C197").output.startswith("C197 expired-approval\n\nAn approval has expired.\n")


def test_settings_of_the_current_folder_are_shown(tmp_path: Path) -> None:
    assert "here      error (no settings)" in run("P302").output
    Path("bespeak.toml").write_text('[lint]\nseverity = { P302 = "info" }\nignore = ["S401"]\n')
    assert f"here      info ({tmp_path / 'bespeak.toml'})" in run("P302").output
    assert f"here      off ({tmp_path / 'bespeak.toml'})" in run("S401").output
    Path("bespeak.toml").write_text("[lint]\nconformance = true\n")
    assert "cannot be ignored" in run("P302").output


def test_all_rules_are_listed_by_pass() -> None:
    lines = run().output.splitlines()
    assert [line for line in lines if line.startswith("Pass ")][:2] == ["Pass 1: Structural", "Pass 2: Method Syntax"]
    assert {line.split()[0] for line in lines if line.startswith("  ")} == set(all_rules())
