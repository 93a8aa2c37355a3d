"""The list of approved changes."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.checks.evolution.contracts import BOOK, book

from bespeak.checks.evolution.change_report import Approval, approve, judge, parse_approvals, with_entries
from bespeak.checks.evolution.contract_diff import Contract, diff_contracts

TODAY = date(2026, 11, 15)
CHANGES = diff_contracts(
    Contract(endpoints=(BOOK,)), Contract(endpoints=(book(is_idempotent=False, impact="irreversible"),))
)
FIRST, SECOND = CHANGES


def entry(fingerprint: str = FIRST.fingerprint, expires: str = "") -> str:
    end = f"expires = {expires}\n" if expires else ""
    return f'[[approval]]\nfingerprint = "{fingerprint}"\nreason = "known"\n{end}'


def test_an_approval_names_its_change_by_fingerprint() -> None:
    approvals, findings = parse_approvals(entry(expires="2026-11-15"), "a.toml")
    judgement = judge(CHANGES, approvals, TODAY)
    assert (findings, judgement.findings) == ([], [])
    assert set(judgement.approved) == {FIRST.fingerprint}


@pytest.mark.parametrize("expires", ["2026-11-14", '"2026-11-14"', "2026-11-14T10:00:00Z"])
def test_expired_approval_is_ignored_and_reported_at_its_place(expires: str) -> None:
    approvals, _ = parse_approvals(entry(expires=expires), "a.toml")
    judgement = judge(CHANGES, approvals, TODAY)
    [finding] = judgement.findings
    assert judgement.approved == {}
    assert (finding.rule, str(finding.location)) == ("C197", "a.toml:1:3")
    assert "2026-11-14" in finding.message


def test_renewed_approval_silences_the_expired_one_and_one_without_a_change_is_stale() -> None:
    approvals, _ = parse_approvals(entry(expires="2026-01-01") + entry(), "a.toml")
    judgement = judge(CHANGES, approvals, TODAY)
    assert (list(judgement.approved), judgement.findings) == ([FIRST.fingerprint], [])
    approvals, _ = parse_approvals(entry("0000"), "a.toml")
    assert [finding.rule for finding in judge(CHANGES, approvals, TODAY).findings] == ["C198"]


@rows(
    "text, part",
    ("[[approval", "not TOML"),
    ("approval = 3", "not a list"),
    ("[[approvals]]", "`approvals` is not a known key"),
    ("approval = [3]", "is a table"),
    ('[[approval]]\nreason = "x"', "fingerprint"),
    ('[[approval]]\nfingerprint = "a"', "no `reason`"),
    ('[[approval]]\nfingerprint = "a"\nreason = " "', "no `reason`"),
    (entry(expires='"soon"'), "a date such as"),
    (entry(expires="7"), "a date such as"),
    (entry() + 'until = "x"', "`until` is not a known key"),
)
def test_invalid_list_is_an_error(text: str, part: str) -> None:
    _, [finding] = parse_approvals(text, "a.toml")
    assert (finding.rule, finding.severity) == ("C196", "error")
    assert part in finding.message


def test_entries_are_added_and_existing_ones_kept() -> None:
    text = with_entries("# ours\n" + entry("0000"), approve([SECOND], "agreed", date(2027, 1, 31)))
    assert text.startswith("# ours\n" + entry("0000"))
    approvals, findings = parse_approvals(text, "a.toml")
    assert findings == []
    assert [approval.fingerprint for approval in approvals] == ["0000", SECOND.fingerprint]
    assert (approvals[1].reason, approvals[1].expires) == ("agreed", date(2027, 1, 31))
    assert approvals[1].change == f"BOOK /room: {SECOND.message}"


@given(st.text(min_size=1).filter(str.strip), st.text())
def test_any_reason_round_trips(reason: str, change: str) -> None:
    approvals, findings = parse_approvals(
        with_entries("", [Approval(fingerprint="f", reason=reason, change=change)]), "a"
    )
    assert findings == []
    assert [(entry.reason, entry.change) for entry in approvals] == [(reason, change)]
