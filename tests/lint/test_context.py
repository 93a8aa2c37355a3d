"""What rules know beside the document."""

from __future__ import annotations

from bespeak.lint.context import Context
from tests.lint.contexts import CONTEXT


def test_without_more_said_a_document_is_checked_as_agis_of_level_one_with_nothing_allowed() -> None:
    context = Context(catalog=CONTEXT.catalog)
    assert (context.agis, context.level) == (True, 1)
    assert not context.allowed_verbs | context.allowed_segments
