from __future__ import annotations

import re

import pytest

from bespeak.text.language.sentence import LatePattern


def test_a_late_pattern_matches_as_a_compiled_one_does() -> None:
    late, compiled = LatePattern("a+B", re.IGNORECASE), re.compile("a+B", re.IGNORECASE)
    for text in ("", "ab", "xAAb", "b"):
        assert (late.search(text) is None) == (compiled.search(text) is None)
        assert (late.fullmatch(text) is None) == (compiled.fullmatch(text) is None)


def test_it_is_compiled_when_first_used_and_once() -> None:
    late = LatePattern("(")
    with pytest.raises(re.error):
        late.search("x")
    good = LatePattern("x")
    assert good.compiled is good.compiled
