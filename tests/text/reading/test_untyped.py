"""Data of other people: what is not of the wanted type is read as missing."""

from __future__ import annotations

import pytest

from bespeak.text.reading.table import as_list, as_mapping, as_text, as_texts


@pytest.mark.parametrize("value", [None, 1, True, "a", [1], {"a": 1}])
def test_value_of_another_type_counts_as_missing(value: object) -> None:
    assert as_mapping(value) == (value if isinstance(value, dict) else {})
    assert as_list(value) == (value if isinstance(value, list) else [])
    assert as_text(value) == (value if isinstance(value, str) else "")


def test_strings_of_a_list_are_kept_and_other_items_skipped() -> None:
    assert as_texts(["a", 1, None, "b"]) == ("a", "b")
    assert as_texts("ab") == ()
