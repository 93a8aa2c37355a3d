"""The rules, one module for each concern; the letter of an id is the concern."""

from __future__ import annotations

from typing import Final

from bespeak.lint.rule import Rule
from bespeak.lint.rules import agis_method, agis_path, consistency, handler, method, path, policy, schema, semantic

RULES: Final[dict[str, Rule]] = {
    rule.id: rule
    for module in (method, path, semantic, schema, handler, policy, agis_method, agis_path, consistency)
    for rule in module.RULES
}
"""Every rule by its id."""
