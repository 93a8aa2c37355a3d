"""What there is to say about a rule."""

from __future__ import annotations

from bespeak.checks.lint.rule_index import all_rules, facts, how_to_ignore, sections
from bespeak.text.diagnostics.diagnostic import Rule

RULE = Rule(
    ("P321", "trailing-slash", "SHOULD", "AGIS 4.1"), "No slash.", "Two names.", "path: /a/\n", "path: /a\n", "safe"
)


def test_a_page_has_every_part() -> None:
    parts = sections(RULE)
    assert [part.title for part in parts] == ["Why", "Bad", "Good", "Fix", "Ignore"]
    assert [part.title for part in parts if part.is_code] == ["Bad", "Good"]
    assert "--fix" in parts[3].text
    assert dict(facts(RULE, "Path Syntax")) == {
        "severity": "warning",
        "binding": "SHOULD: recommended by the draft",
        "source": "AGIS 4.1",
        "pass": "4, Path Syntax",
    }


def test_empty_sections_are_omitted() -> None:
    assert [part.title for part in sections(all_rules()["D101"])] == ["Why", "Fix", "Ignore"]
    assert dict(facts(all_rules()["P302"], ""))["pass"] == "none of AGIS 9.1"


def test_every_page_tells_how_to_ignore_the_rule_except_where_nothing_was_checked() -> None:
    assert {rule.id for rule in all_rules().values() if rule.id not in how_to_ignore(rule)} == {"D101", "D102", "D194"}


def test_live_rule_is_ignored_per_run_and_not_per_line() -> None:
    text = how_to_ignore(all_rules()["W919"])
    assert "--ignore W919" in text
    assert "#" not in text
