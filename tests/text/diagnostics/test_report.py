"""A run in numbers."""

from __future__ import annotations

from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, Severity
from bespeak.text.diagnostics.report import Finding, Report, summary
from bespeak.text.source.tree import Location


def finding(severity: Severity, fix: Fix | None = None) -> Finding:
    return Finding(Diagnostic("P301", severity, "wrong", Location("a.toml"), fix=fix))


def test_the_summary_of_a_clean_run_says_so() -> None:
    assert summary(Report(findings=[], files=["a.toml"])) == "Checked 1 file: nothing found."


def test_summary_counts_by_severity_and_names_fixable_findings() -> None:
    safe, unsafe = Fix("Mend it", ()), Fix("Guess", (), safe=False)
    report = Report(
        findings=[finding("error", safe), finding("error"), finding("warning", unsafe), finding("info")],
        files=["a.toml", "b.toml"],
    )
    assert summary(report) == (
        "Checked 2 files: 2 errors, 1 warning, 1 info. "
        "1 can be fixed with --fix. 1 more can be fixed with --fix --unsafe-fixes."
    )
    assert report.count() == {"error": 2, "warning": 1, "info": 1}
    assert report.fixable() == (1, 1)


def test_summary_names_hidden_findings() -> None:
    report = Report(findings=[], files=["a"], ignored=2, baselined=1, left_out=5)
    assert summary(report) == "Checked 1 file: nothing found. 5 more are not shown. 2 ignored, 1 in the baseline."


def test_a_finding_without_a_place_has_no_file() -> None:
    assert Finding(Diagnostic("P301", "error", "wrong")).file == ""
    assert finding("error").file == "a.toml"


def test_summary_of_a_run_over_addresses_counts_documents() -> None:
    assert summary(Report(findings=[], files=["a.toml", "https://x.test/"])) == "Checked 2 documents: nothing found."
    found = Finding(Diagnostic("W101", "error", "wrong", Location("https://x.test")))
    assert summary(Report(findings=[found])) == "Checked 0 documents: 1 error."
