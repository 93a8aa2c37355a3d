"""Findings in an editor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lsprotocol import types
from tests.app.lsp import texts
from tests.cases import rows
from tests.checks.lint.agis_text import document, endpoint
from tests.process import ROOT, bespeak

from bespeak.app.lsp.completion import (
    LONGEST,
    MOST,
    catalog_of,
    check,
    guess_kind,
    is_excluded,
    is_ours,
    shown,
    to_diagnostic,
    touching,
)
from bespeak.app.lsp.cursor import Positions
from bespeak.text.diagnostics.diagnostic import Diagnostic, Severity
from bespeak.text.diagnostics.report import Finding
from bespeak.text.source.tree import Location


@rows(
    "severity, shown_as",
    ("error", types.DiagnosticSeverity.Error),
    ("warning", types.DiagnosticSeverity.Warning),
    ("info", types.DiagnosticSeverity.Information),
)
def test_a_finding_keeps_its_severity_rule_and_advice(severity: Severity, shown_as: types.DiagnosticSeverity) -> None:
    finding = Finding(Diagnostic("P302", severity, "wrong", Location("x", 1, 1, 1, 3), "/a", "Mend it."), "abc")
    made = to_diagnostic(finding, Positions("a: 1"))
    assert (made.severity, made.code, made.source) == (shown_as, "P302", "bespeak")
    assert (made.message, made.data) == ("wrong\nMend it.", {"pointer": "/a", "fingerprint": "abc"})


def test_an_emoji_before_a_finding_counts_two() -> None:
    entry = {"x-icon": "🛏🛏", **endpoint(path="/room/")}
    text = json.dumps(document(entry), ensure_ascii=False)
    known, positions, number = texts.found(text, "P321")
    place = to_diagnostic(known.findings[number], positions).range
    assert place.start == types.Position(0, text.index('"/room/"') + 2)
    assert place.end == types.Position(0, text.index('"/room/"') + 2 + len('"/room/"'))


def test_an_unused_ignore_is_shown_as_unnecessary() -> None:
    text = texts.yaml().replace("path: /room", "path: /room  # bespeak: ignore[P302]")
    known, positions, number = texts.found(text, "D190")
    assert to_diagnostic(known.findings[number], positions).tags == [types.DiagnosticTag.Unnecessary]


def test_a_flood_of_findings_is_cut_and_said() -> None:
    finding = Finding(Diagnostic("P302", "error", "wrong"))
    made = shown([finding] * (MOST + 5), Positions("a"))
    assert len(made) == MOST + 1
    assert made[-1].message.startswith("5 more findings")


def test_findings_that_touch_the_cursor_are_included() -> None:
    finding = Finding(Diagnostic("P302", "error", "wrong", Location("x", 1, 3, 1, 5)))
    positions = Positions("0123456789")

    def at(character: int) -> types.Range:
        return types.Range(types.Position(0, character), types.Position(0, character))

    assert [number for number in range(6) if list(touching([finding], positions, at(number)))] == [2, 3, 4]


ROOMS = (ROOT / "docs_src/lint/rooms.agis").read_text()
SETTINGS = """
[tool.bespeak.lint]
ignore = ["J6"]
exclude = ["old"]

[tool.bespeak.lint.severity]
P321 = "info"

[tool.bespeak.lint.per-path-ignores]
"sub/*.agis" = ["V506"]
"""


@pytest.mark.process
@rows(
    "settings, text",
    ("", ROOMS),
    (SETTINGS, ROOMS),
    (SETTINGS, ROOMS.replace("BOOKING", "BOOKING  # bespeak: ignore[M211] theirs")),
    ("", "agis: [broken"),
)
def test_an_editor_and_the_command_line_agree(tmp_path: Path, settings: str, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(settings)
    file = tmp_path / "sub" / "rooms.agis"
    file.parent.mkdir()
    file.write_text(text)
    report = json.loads(bespeak("lint", "sub/rooms.agis", "--format", "json", cwd=tmp_path).stdout)
    said = [(entry["rule"], entry["severity"], entry["message"]) for entry in report["findings"]]
    here = [
        (finding.diagnostic.rule, finding.diagnostic.severity, finding.diagnostic.message)
        for finding in check(text, file, tmp_path).findings
    ]
    assert here == said
    assert here


@pytest.mark.process
def test_findings_in_the_baseline_are_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "rooms.agis"
    file.write_text(ROOMS)
    bespeak("lint", "rooms.agis", "--write-baseline", cwd=tmp_path)
    assert check(ROOMS, file, tmp_path).findings == ()
    worse = ROOMS.replace("actor: agent", "actor: robot")
    assert check(worse, file, tmp_path).findings != ()


def test_excluded_files_are_not_checked(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(SETTINGS)
    assert is_excluded(tmp_path / "old" / "a" / "rooms.agis", tmp_path)
    assert not is_excluded(tmp_path / "new" / "rooms.agis", tmp_path)
    assert check(ROOMS, tmp_path / "old" / "rooms.agis", tmp_path).findings == ()


def test_invalid_settings_are_reported_in_the_document(tmp_path: Path) -> None:
    (tmp_path / "bespeak.toml").write_text('[lint]\nignore = ["NONSENSE"]\n')
    (finding,) = check(ROOMS, tmp_path / "rooms.agis", tmp_path).findings
    assert "lint settings are not valid" in finding.diagnostic.message
    assert "NONSENSE" in finding.diagnostic.message
    assert "bespeak.toml" in finding.diagnostic.message
    assert finding.diagnostic.location is None


def test_document_without_a_file_is_checked_and_a_text_that_is_too_long_is_not_read() -> None:
    (finding,) = texts.checked("a: " + "x" * LONGEST).findings
    assert finding.diagnostic.severity == "info"
    assert "more than 2 million characters" in finding.diagnostic.message
    known = check(ROOMS, None, texts.HERE)
    assert "M211" in texts.rules(known)
    assert catalog_of(known).version == catalog_of(None).version


@rows(
    "name, language, text, ours",
    ("a.agis", "yaml", "", True),
    ("bespeak.toml", "toml", "", True),
    ("agtp-recipes.toml", "toml", "", True),
    ("rooms.toml", "toml", "[endpoint]\n", True),
    ("pyproject.toml", "toml", "[project]\n", False),
    ("manifest.json", "json", '{"agtp_version": "1"}', True),
    ("package.json", "json", '{"name": "x"}', False),
    (".well-known/ai", "json", '{"aiendpoint": "1.0"}', True),
    ("notes.py", "python", 'x = {"agis": 1}', False),
    (None, "agis", "", True),
    (None, "plaintext", '{"agis": "1.0"}', False),
)
def test_only_documents_of_ours_are_checked(name: str | None, language: str, text: str, ours: bool) -> None:
    assert is_ours(texts.HERE / name if name else None, language, text) is ours


@rows(
    "name, text, kind",
    ("a.agis", "", "agis"),
    (None, "", "agis"),
    ("agtp-recipes.toml", "", "recipes"),
    ("bespeak.toml", "", "server"),
    ("book.toml", "", "endpoint"),
    ("a.json", '{"agis"', "agis"),
    ("a.json", '{"aiendpoint"', "ai"),
    ("a.json", '{"agtp_version"', "manifest"),
)
def test_the_kind_of_a_broken_document_is_guessed(name: str | None, text: str, kind: str) -> None:
    assert guess_kind(texts.HERE / name if name else None, text) == kind
