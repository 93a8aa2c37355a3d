"""The table of formats."""

from __future__ import annotations

import pytest

from bespeak.diagnostics.report import Report
from bespeak.diagnostics.reporters import FORMATS, reporter


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_writes_whole_lines_that_any_terminal_and_file_takes(name: str, report: Report) -> None:
    text = reporter(name)(report)
    assert text.endswith("\n")
    text.encode()
    assert "\x1b" not in text


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_names_every_rule(name: str, report: Report) -> None:
    text = reporter(name)(report)
    assert all(finding.diagnostic.rule in text for finding in report.findings)
