"""What rules know beside the document."""

from __future__ import annotations

from tests.checks.lint.contexts import CONTEXT

from bespeak.checks.lint.subject import Context


def test_defaults_are_agis_level_one_with_nothing_allowed() -> None:
    context = Context(catalog=CONTEXT.catalog)
    assert (context.agis, context.level) == (True, 1)
    assert not context.allowed_verbs | context.allowed_segments
