"""Keywords in descriptions."""

from __future__ import annotations

from bespeak.documents.projections.model_tools.passes import wording
from bespeak.documents.projections.model_tools.schema import ONE, SAYS


def test_keywords_that_are_not_kept_follow_the_description() -> None:
    worded = wording(lambda keyword, _: keyword == "minLength")
    node = {"type": "string", "minLength": 1, "maxLength": 3, "default": "a", "description": "A code", SAYS: ["Said."]}
    assert worded(node, {}) == {
        "type": "string",
        "minLength": 1,
        "description": "A code. Said. At most 3 characters. Default: a.",
    }


def test_a_description_that_needs_no_sentence_stays_as_it_is() -> None:
    node = {"type": "string", "description": " As written "}
    assert wording(lambda *_: True)(node, {}) == node


def test_alternatives_that_exclude_each_other_are_announced_only_if_they_overlap() -> None:
    worded = wording(lambda *_: True)
    text, count = {"type": "string"}, {"type": "integer"}
    assert "description" not in worded({"anyOf": [text, count], ONE: True}, {})
    assert "Exactly one" in worded({"anyOf": [text, {"type": "string", "maxLength": 2}], ONE: True}, {})["description"]


def test_a_description_is_bounded() -> None:
    assert len(wording(lambda *_: True)({SAYS: ["x" * 10_000]}, {})["description"]) == 2_000
