from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.contract.agent import canonical_genesis, genesis_id

VALUES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8)


@pytest.mark.requirement("CORE-7.1-1")
def test_the_canonical_form_is_sorted_and_has_no_white_space_no_signature_and_no_id() -> None:
    record = {"owner": "Zürich", "b": {"d": 1, "c": [True, None]}, "signature": "s", "agent_id": "i"}
    assert canonical_genesis(record) == '{"b":{"c":[true,null],"d":1},"owner":"Zürich"}'.encode()
    assert genesis_id(record) == hashlib.sha256(canonical_genesis(record)).hexdigest()


@given(st.dictionaries(st.text(max_size=8), VALUES | st.lists(VALUES, max_size=3), max_size=6))
def test_another_json_library_gives_the_same_bytes(record: dict[str, Any]) -> None:
    signed = {name: value for name, value in record.items() if name not in ("signature", "agent_id")}
    assert json.loads(canonical_genesis(record)) == signed
    assert genesis_id(dict(reversed(record.items()))) == genesis_id(record)
    plain = json.dumps(signed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if all(character.isprintable() and ord(character) < 0x10000 for character in plain):
        assert canonical_genesis(record).decode() == plain


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_change_changes_the_id(one: str, other: str) -> None:
    assert (genesis_id({"name": one}) == genesis_id({"name": other})) == (one == other)
