"""Lint report on a manifest as JSON: what `bespeak lint` finds in the contract that a server publishes."""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

import msgspec

from bespeak.checks.lint.document import check_text
from bespeak.checks.lint.rule_index import all_rules
from bespeak.checks.lint.subject import LintContext
from bespeak.contract.catalog.document import bundled_versions, load_bundled
from bespeak.text.diagnostics.report import Finding, Report
from bespeak.text.diagnostics.reporters.json_report import document, encoded

_MOST: Final = 200  # maximum number of findings; the summary counts the others


class _Versions(msgspec.Struct):
    catalog_version: str = ""


def report_manifest(manifest: bytes, shown: str) -> str:
    """Check a manifest; `shown` is its name in the findings."""
    named = msgspec.json.decode(manifest, type=_Versions).catalog_version
    catalog = load_bundled(named) if named in bundled_versions() else load_bundled()
    found = check_text(manifest.decode(), shown, LintContext(catalog=catalog), "manifest").findings
    report = Report(
        findings=[Finding(diagnostic) for diagnostic in found[:_MOST]],
        files=(shown,),
        rules=all_rules(),
        version=version("bespeak"),
        left_out=max(0, len(found) - _MOST),
    )
    return encoded(document(report), indent=None)
