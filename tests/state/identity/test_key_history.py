"""The set beside a key: what it held once, in order, and nothing private."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.protocol.fault import Fault
from bespeak.state.identity.key_history import history_path, history_text, parse_history, read_history
from bespeak.state.identity.key_text import generate_key, key_id


def test_set_keeps_order_without_duplicates_and_private_parts() -> None:
    keys = [generate_key() for _ in range(3)]
    text = history_text([*keys, keys[0]])
    again = parse_history(text)
    assert isinstance(again, list)
    assert [key_id(key) for key in again] == [key_id(key) for key in keys]
    assert not any(key.is_private for key in again)


def test_key_under_the_id_of_another_is_refused() -> None:
    one, other = generate_key(), generate_key()
    again = parse_history(history_text([one]).replace(key_id(one), key_id(other)))
    assert isinstance(again, list)
    assert [key_id(key) for key in again] == [key_id(one)]


def test_set_is_stored_beside_the_key(tmp_path: Path) -> None:
    path = tmp_path / "server.pem"
    assert history_path(path) == tmp_path / "server.pem.keys.json"
    assert read_history(path) == []
    history_path(path).write_text(history_text([generate_key()]))
    found = read_history(path)
    assert isinstance(found, list)
    assert len(found) == 1


@pytest.mark.parametrize(
    "text", ["", "[]", "7", "{}", '{"keys": {}}', '{"keys": [1]}', '{"keys": [{}]}', "[" * 100_000]
)
def test_invalid_set_is_a_fault(text: str, tmp_path: Path) -> None:
    assert isinstance(parse_history(text), Fault)
    history_path(tmp_path / "k").write_text(text)
    fault = read_history(tmp_path / "k")
    assert isinstance(fault, Fault)
    assert "k.keys.json" in fault.message


@given(st.text(max_size=60))
def test_any_text_is_a_set_or_a_fault(text: str) -> None:
    assert isinstance(parse_history(text), list | Fault)
