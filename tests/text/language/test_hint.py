"""Words behind a verb that name the action."""

from __future__ import annotations

import pytest

from bespeak.text.language.phrases import hinted_verb


@pytest.mark.parametrize(
    ("verb", "text", "expected"),
    [
        ("create", "creates a payment", ("pay", 2)),
        ("mark", "marks a file for deletion", ("delete", 4)),
        ("submit", "submits a verification code", ("verify", 2)),
        ("create", "creates a payment method", None),
        ("send", "sends a cancellation notice", None),
        ("mark", "marks a file for the archive", None),
        ("create", "creates", None),
        ("mark", "marks a file as deleted", ("delete", 4)),
        ("move", "moves a note to the trash", ("delete", 5)),
        ("stop", "stops following a user", ("unfollow", 1)),
        ("stop", "stops running a job", None),
        ("stop", "stops", None),
        ("remove", "removes the lock of a page", ("unlock", 2)),
        ("remove", "removes a page", None),
        ("cancel", "cancels the deletion of a key", ("restore", 2)),
        ("cancel", "cancels the creation of a key", None),
    ],
)
def test_noun_after_another_verb_can_give_the_verb(verb: str, text: str, expected: tuple[str, int] | None) -> None:
    assert hinted_verb(verb, text.split(), 0) == expected
