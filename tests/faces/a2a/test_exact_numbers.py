"""Numbers of data parts: integers stay integers, and large ones keep their digits as texts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.faces.a2a.skills import restore_integers, restore_large, write_large

LARGE = 2**60 + 1
SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "maybe": {"type": ["integer", "null"]},
        "a/b": {"type": "object", "properties": {"list": {"type": "array", "items": {"$ref": "#/$defs/id"}}}},
        "text": {"type": "string"},
    },
    "$defs": {"id": {"type": "integer", "minimum": 0}},
}


VALUES = st.recursive(
    st.integers() | st.text() | st.booleans() | st.none(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def restored(**arguments: Any) -> dict[str, Any]:
    validator = compile_schema(SCHEMA)
    assert isinstance(validator, Validator)
    restore_large(arguments, validator)
    return arguments


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        (3.0, 3),
        (-0.0, 0),
        (2.5, 2.5),
        (1e300, 1e300),
        (
            {"a": [1.0, {"b": 2.0}], "c": "3.0", "d": True, "e": None},
            {"a": [1, {"b": 2}], "c": "3.0", "d": True, "e": None},
        ),
    ],
)
def test_whole_numbers_are_integers_again(sent: Any, meant: Any) -> None:
    found = restore_integers(sent)
    assert found == meant
    assert repr(found) == repr(meant)


def test_large_integers_are_sent_as_texts_where_the_schema_asks_for_integers() -> None:
    found = restored(n=str(LARGE), maybe=f"-{LARGE}", **{"a/b": {"list": [1, str(LARGE)]}}, text=str(LARGE))
    assert found == {"n": LARGE, "maybe": -LARGE, "a/b": {"list": [1, LARGE]}, "text": str(LARGE)}


@pytest.mark.parametrize("value", ["12", "1e20", f"{LARGE}.0", "9" * 41, "٣" * 20, f" {LARGE}", ""])
def test_other_texts_are_not_integers(value: str) -> None:
    assert restored(n=value) == {"n": value}


@given(VALUES)
def test_what_is_written_survives_a_double(value: Any) -> None:
    def through_doubles(here: Any) -> Any:
        if isinstance(here, bool):
            return here
        if isinstance(here, int):
            return float(here)
        if isinstance(here, list):
            return [through_doubles(item) for item in here]
        return {name: through_doubles(item) for name, item in here.items()} if isinstance(here, dict) else here

    written = write_large(value)
    assert restore_integers(through_doubles(written)) == written
