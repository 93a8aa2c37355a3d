"""A filter of idempotency keys: new keys are known for certain."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bespeak.runtime.idempotency import SeenKeys


@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), max_size=20))
def test_a_key_that_was_added_is_never_called_new(keys: list[tuple[str, str]]) -> None:
    seen = SeenKeys(keys[::2])
    for scope, key in keys[1::2]:
        seen.add(scope, key)
    assert [key for key in keys if seen.add(*key)] == []


def test_most_keys_of_others_are_new() -> None:
    seen = SeenKeys(("scope", str(number)) for number in range(1000))
    assert sum(seen.add("scope", str(number)) for number in range(1000, 2000)) > 990
