"""What rules know beside the document."""

from __future__ import annotations

from tests.checks.lint.contexts import CONTEXT

from bespeak.checks.lint.context import Context


def test_without_more_said_a_document_is_checked_as_agis_of_level_one_with_nothing_allowed() -> None:
    context = Context(catalog=CONTEXT.catalog)
    assert (context.agis, context.level) == (True, 1)
    assert not context.allowed_verbs | context.allowed_segments
