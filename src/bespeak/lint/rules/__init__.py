"""The rules, one module for each concern; the letter of an id is the concern."""

from __future__ import annotations

from typing import Final

from bespeak.lint.rule import Rule
from bespeak.lint.rules import (
    agis_error,
    agis_method,
    agis_path,
    agis_reference,
    agis_schema,
    agis_semantic,
    ai_discovery,
    consequence,
    consistency,
    data_manifest,
    handler,
    intent,
    manifest,
    mcp_tool,
    method,
    parameter_hint,
    path,
    policy,
    recipe,
    schema,
    schema_safety,
    security,
    semantic,
    vocabulary,
)

RULES: Final[dict[str, Rule]] = {
    rule.id: rule
    for module in (
        *(manifest, ai_discovery, method, agis_method, path, agis_path),
        *(semantic, agis_semantic, intent, consequence, parameter_hint, consistency, vocabulary, data_manifest),
        *(schema, agis_schema, agis_reference, agis_error, mcp_tool, handler, policy, recipe),
        *(security, schema_safety),
    )
    for rule in module.RULES
}
"""Every rule by its id."""
