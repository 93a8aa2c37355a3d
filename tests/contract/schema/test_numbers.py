"""Numbers that JSON lacks."""

from __future__ import annotations

import math

from bespeak.contract.schema.validation import non_finite


def test_infinities_and_nan_are_found_with_their_pointers() -> None:
    value = {"a": [1.0, math.inf], "b": {"c": math.nan}, "d": None, "e": "inf"}
    assert sorted(violation.pointer for violation in non_finite(value)) == ["/a/1", "/b/c"]
    assert non_finite({"a": [1.5, -0.0, None]}) == []
