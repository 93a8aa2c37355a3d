"""Documentation of a rule as Markdown."""

from __future__ import annotations

from bespeak.checks.lint.passes import PASSES, pass_of
from bespeak.checks.lint.rule_page import facts, sections
from bespeak.text.diagnostics.rule import Rule


def rule_text(rule: Rule) -> str:
    """Return the text of `bespeak explain` for a rule."""
    name = next((step.name for step in PASSES if step.number == pass_of(rule.id)), "")
    parts = [f"**{rule.id}** `{rule.name}`", rule.summary]
    parts.append("\n".join(f"- {title}: {text}" for title, text in facts(rule, name)))
    for title, text, is_code in sections(rule):
        parts.append(f"**{title}**\n\n```{rule.notation}\n{text.rstrip()}\n```" if is_code else f"**{title}:** {text}")
    return "\n\n".join(parts)
