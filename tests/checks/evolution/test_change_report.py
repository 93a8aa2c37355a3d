"""The outcome of a comparison."""

from __future__ import annotations

import pytest
from tests.checks.evolution.contracts import BOOK, book

from bespeak.checks.evolution.change import Category
from bespeak.checks.evolution.change_report import Approval, ChangeReport, FailOn, advise, by_endpoint, markdown, within
from bespeak.checks.evolution.contract_diff import Contract, diff_contracts
from bespeak.text.diagnostics.reporters import FORMATS, reporter

NEW = book(is_idempotent=False, confidence=0.5, required_scopes=(), description="Take | a <b>room</b>.", errors=())
CHANGES = diff_contracts(Contract(endpoints=(BOOK,)), Contract(endpoints=(NEW,)))
BREAKING = next(change for change in CHANGES if change.level == "breaking")
APPROVED = {BREAKING.fingerprint: Approval(fingerprint=BREAKING.fingerprint, reason="Nobody calls it.")}


def report(fail_on: FailOn = "breaking", *, approved: bool = False, new: str = "1.1.0") -> ChangeReport:
    version = advise(CHANGES, "1.0.0", new)
    found = version.finding()
    return ChangeReport(
        old="a.agis",
        new="b.agis",
        changes=CHANGES,
        fail_on=fail_on,
        version=version,
        approved=APPROVED if approved else {},
        findings=[found] if found else [],
    )


@pytest.mark.parametrize(
    ("fail_on", "failed", "failed_though_approved"),
    [("breaking", True, False), *((one, True, True) for one in ("risky", "any", "bump")), ("none", False, False)],
)
def test_failing_level_is_configurable(fail_on: FailOn, failed: bool, failed_though_approved: bool) -> None:
    assert report(fail_on).failed is failed
    assert report(fail_on, approved=True).failed is failed_though_approved
    assert not report("bump", new="2.0.0").failed


@pytest.mark.parametrize(
    ("category", "inner"),
    [("WIRE", {"WIRE"}), ("CONTRACT", {"WIRE", "CONTRACT"}), ("PROSE", {"WIRE", "CONTRACT", "PROSE"})],
)
def test_categories_are_nested(category: Category, inner: set[str]) -> None:
    assert {change.about.category for change in within(CHANGES, category)} == inner


def test_report_begins_with_the_most_severe_change_and_separates_approved_ones() -> None:
    levels = [change.level for change in by_endpoint(CHANGES)["BOOK /room"]]
    assert levels == ["breaking", "risky", "safe", "safe", "safe"]
    assert report().summary() == "1 breaking, 1 risky, 3 safe."
    assert report(approved=True).summary() == "1 risky, 3 safe, 1 approved."
    assert "| ~~breaking~~ | C152 `idempotency-lost` |" in markdown(report(approved=True))
    assert "Approved: Nobody calls it." in markdown(report(approved=True))
    [finding] = [found for found in report(approved=True).findings_report().findings if found.diagnostic.rule == "C152"]
    assert (finding.diagnostic.severity, finding.diagnostic.help) == ("info", "Approved: Nobody calls it.")
    assert finding.fingerprint == BREAKING.fingerprint


def test_markdown_keeps_every_text_in_its_cell_and_json_marks_approved_changes() -> None:
    text = markdown(report())
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {5}
    assert "<b>" not in text
    assert "| **breaking** | C152 `idempotency-lost` |" in text
    assert "too small" in text
    data = report(approved=True).to_json()
    [approved] = [change["approved"] for change in data["changes"] if change["rule"] == "C152"]
    assert approved == {"reason": "Nobody calls it.", "expires": None}
    assert data["version"]["too_small"] is True
    assert data["failed"] is False


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_every_reporter_accepts_changes(form: str) -> None:
    text = reporter(form)(report().findings_report())
    assert "C152" in text
    assert "C195" in text
