"""Places below places, by the parts of a pointer."""

from __future__ import annotations

import pytest

from bespeak.text.source.json_tree import JsonTree, parse_json
from bespeak.text.source.tree import Span

TEXT = '{"a/b": [10, {"~": 20}], "c": {}}'


def tree() -> JsonTree:
    parsed = parse_json(TEXT, "x.json")
    assert isinstance(parsed, JsonTree)
    return parsed


@pytest.mark.parametrize(
    ("at", "key", "value"),
    [
        ("", None, TEXT),
        ("/a~1b", '"a/b"', '[10, {"~": 20}]'),
        ("/a~1b/0", "10", "10"),
        ("/a~1b/1/~0", '"~"', "20"),
        ("/c", '"c"', "{}"),
    ],
)
def test_a_pointer_leads_to_the_key_and_the_value(at: str, key: str | None, value: str) -> None:
    def written(span: Span | None) -> str | None:
        return TEXT[span.start : span.end] if span else None

    assert (written(tree().key_span(at)), written(tree().value_span(at))) == (key, value)


@pytest.mark.parametrize("at", ["/x", "/a~1b/2", "/a~1b/-1", "/a~1b/x", "/c/0", "/a~1b/0/0", "/a/b"])
def test_a_pointer_that_leads_nowhere_has_no_place(at: str) -> None:
    assert (tree().place(at), tree().key_span(at), tree().value_span(at)) == (None, None, None)
