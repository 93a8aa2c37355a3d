"""A rule in an editor."""

from __future__ import annotations

import pytest

from bespeak.app.lsp.rule_text import rule_text
from bespeak.checks.lint.registry import all_rules


@pytest.mark.parametrize("rule", all_rules())
def test_a_rule_says_what_it_asks_and_how_to_ignore_it(rule: str) -> None:
    text = rule_text(all_rules()[rule])
    assert text.startswith(f"**{rule}**")
    assert all_rules()[rule].summary in text
    assert text.count("```") % 2 == 0


def test_a_rule_shows_bad_and_good() -> None:
    text = rule_text(all_rules()["P302"])
    assert "**Bad**\n\n```toml\n" in text
    assert "**Good**\n\n```toml\n" in text
    assert "ignore[P302]" in text
