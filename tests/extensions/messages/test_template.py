"""A template is filled in with the variables it needs, and carries out nothing."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.contract.delivery import TemplateSettings
from bespeak.extensions.messages.methods_send import fill

TEMPLATE = TemplateSettings(subject="Room $room", body="Dear ${guest}, you owe $$$sum.")


def test_variables_are_filled_in_and_others_are_ignored() -> None:
    filled = fill(TEMPLATE, {"room": 12, "guest": "$room {guest.__class__}", "sum": 7.5, "more": {}})
    assert filled == ("Room 12", "Dear $room {guest.__class__}, you owe $7.5.")


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ("text", "must be an object"),
        ({"room": 1}, "lacks guest, sum"),
        ({"room": 1, "guest": None, "sum": []}, "for guest, sum"),
        ({"room": "x" * 200_000, "guest": "a", "sum": 1}, "more than 256 KiB"),
    ],
)
def test_values_that_do_not_fit_are_refused(values: Any, fault: str) -> None:
    filled = fill(TEMPLATE, values)
    assert isinstance(filled, str)
    assert fault in filled
