"""Lines for findings with only a file and a pointer."""

from __future__ import annotations

from pathlib import Path

from bespeak.documents.deployment.folder import with_positions
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.tree import Location


def test_a_pointer_gets_its_line(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text('[endpoint]\nmethod = "BOOK"\npath = "/room/book"\n')
    finding = Diagnostic("P302", "error", "a verb in the path", Location(str(file)), "/endpoint/path")
    (placed,) = with_positions([finding])
    assert placed.location == Location(str(file), 3, 1)
    assert (placed.rule, placed.message) == (finding.rule, finding.message)


def test_finding_without_file_or_pointer_or_with_a_line_stays_unchanged(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("[endpoint")
    findings = [
        Diagnostic("X1", "error", "no place"),
        Diagnostic("X2", "error", "no pointer", Location(str(broken))),
        Diagnostic("X3", "error", "a line", Location("x.toml", 7, 1), "/a"),
        Diagnostic("X4", "error", "no file", Location(str(tmp_path / "none.toml")), "/a"),
        Diagnostic("X5", "error", "no TOML", Location(str(broken)), "/a"),
        Diagnostic("X6", "error", "Python", Location("app.py"), "/a"),
    ]
    assert with_positions(findings) == findings
