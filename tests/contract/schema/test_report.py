"""The refusal of an input that violates its schema."""

from __future__ import annotations

from bespeak.contract.schema.validation import Violation, refuse_input


def test_message_has_the_first_violation_and_the_list_all() -> None:
    violations = [
        Violation("/a", "/properties/a/type", "type", "1 is no text"),
        Violation("", "/required", "required", "b"),
    ]
    refused = refuse_input("BOOK", "/room", violations)
    assert (refused.status, refused.code) == (422, "input-validation-failed")
    assert refused.message == "The input of BOOK /room is not valid: 1 is no text (and 1 more)."
    assert [violation["pointer"] for violation in refused.details["violations"]] == ["/a", ""]
