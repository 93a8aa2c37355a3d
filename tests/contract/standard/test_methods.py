"""The configuration chooses standard methods by name, by category, or all of them."""

from __future__ import annotations

import pytest

from bespeak.contract.standard.methods import STANDARD, choose_methods
from bespeak.documents.deployment.server_toml import parse_server


def test_methods_are_chosen_by_name_category_or_star() -> None:
    assert choose_methods(["log", "QUOTE"]) == ("QUOTE", "LOG")
    assert choose_methods(["communicate"]) == ("ALERT", "BROADCAST", "REPLY", "SEND", "REPORT")
    assert choose_methods(["*"]) == tuple(STANDARD)
    assert choose_methods([]) == choose_methods(["NAP"]) == ()


READS = {
    "FETCH",
    "SEARCH",
    "SCAN",
    "FIND",
    "ANALYZE",
    "EXTRACT",
    "FILTER",
    "VALIDATE",
    "TRANSFORM",
    "TRANSLATE",
    "NORMALIZE",
    "PREDICT",
    "RANK",
    "CLASSIFY",
    "CALCULATE",
    "EVALUATE",
    "GENERATE",
    "RECOMMEND",
}
SUMMARY = {"QUOTE", "CHECK", "MAP", *READS}
"""Methods that the summary of the draft lists as idempotent and as not changing state (Tier 2 9)."""
CONDITIONAL = {"BATCH", "RETRY"}
"""Methods that are as idempotent as what they call, which their contract cannot promise."""


@pytest.mark.requirement("METHODS-9-1", "METHODS-9-2")
def test_only_the_methods_of_the_summary_are_idempotent_or_change_no_state() -> None:
    idempotent = {method.name for method in STANDARD.values() if method.idempotent}
    assert idempotent == SUMMARY
    assert not idempotent & CONDITIONAL
    informational = {method.name for method in STANDARD.values() if method.impact == "informational"}
    assert informational == SUMMARY


def test_unknown_methods_are_reported_with_advice() -> None:
    document, findings = parse_server('[methods]\nenable = ["LOG", "orchestrate", "nap"]', "bespeak.toml")
    assert "nap" not in document.methods.enable
    [finding] = [one for one in findings if "nap" in one.message]
    assert "must be a standard method, a category or *" in finding.message
    assert "bespeak methods list" in (finding.help or "")
