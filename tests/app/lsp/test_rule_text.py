"""A rule in an editor."""

from __future__ import annotations

from tests.cases import check_each

from bespeak.app.lsp.rule_text import rule_text
from bespeak.checks.lint.registry import all_rules
from bespeak.text.diagnostics.rule import Rule


def test_a_rule_text_has_its_reason_and_how_to_ignore_it() -> None:
    def check(rule: Rule) -> None:
        text = rule_text(rule)
        assert text.startswith(f"**{rule.id}**")
        assert rule.summary in text
        assert text.count("```") % 2 == 0

    check_each(all_rules().values(), check, name=lambda rule: rule.id)


def test_a_rule_shows_bad_and_good() -> None:
    text = rule_text(all_rules()["P302"])
    assert "**Bad**\n\n```toml\n" in text
    assert "**Good**\n\n```toml\n" in text
    assert "ignore[P302]" in text
