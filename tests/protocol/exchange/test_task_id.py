"""Task-IDs are opaque texts that fit in a header."""

from __future__ import annotations

import pytest

from bespeak.protocol.exchange.header_values import LONGEST_TASK_ID, is_task_id


@pytest.mark.parametrize("text", ["t", "task-0042", "a b", "Aufgabe-Ä", "x" * LONGEST_TASK_ID])
def test_texts_that_fit_in_a_header_are_task_ids(text: str) -> None:
    assert is_task_id(text)


@pytest.mark.parametrize("text", ["", " t", "t ", "a\r\nEvil: yes", "a\x00b", "x" * (LONGEST_TASK_ID + 1)])
def test_texts_that_would_not_arrive_unchanged_are_not(text: str) -> None:
    assert not is_task_id(text)
