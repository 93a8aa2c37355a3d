"""The set beside a key: what it held once, in order, signed by the key, and nothing private."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import OKPKey
from tests.cases import rows

from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.identity.jws import generate_key, key_id, parse_jwk, parse_key, private_text, public_jwk
from bespeak.state.identity.key_files import PastKey, history_path, history_text, parse_history, read_history, read_key

KEY, OLD = generate_key(), generate_key()
THEN = 1_800_000_000.5


def saved(folder: Path, text: str) -> Path:
    path = folder / "server.pem"
    history_path(path).write_text(text)
    return path


def test_set_keeps_order_and_times_without_duplicates_and_private_parts() -> None:
    keys = [PastKey(KEY), PastKey(OLD, THEN), PastKey(generate_key(), THEN - 1)]
    again = parse_history(history_text([*keys, keys[0]], [KEY]))
    assert isinstance(again, list)
    assert [key_id(one.key) for one in again] == [key_id(one.key) for one in keys]
    assert [one.replaced_at for one in again] == [None, THEN, THEN - 1]
    assert not any(one.key.is_private for one in again)


def test_id_of_a_key_derives_from_the_key() -> None:
    again = parse_history(history_text([PastKey(KEY)], [KEY]).replace(key_id(KEY), key_id(OLD)))
    assert isinstance(again, list)
    assert [key_id(one.key) for one in again] == [key_id(KEY)]


def test_set_is_read_with_each_of_the_keys_that_signed_it(tmp_path: Path) -> None:
    assert history_path(tmp_path / "server.pem") == tmp_path / "server.pem.keys.json"
    assert read_history(tmp_path / "server.pem", KEY) == []
    path = saved(tmp_path, history_text([PastKey(KEY), PastKey(OLD, THEN)], [KEY, OLD]))
    for key in (KEY, OLD, OKPKey.import_key(public_jwk(KEY))):
        found = read_history(path, key)
        assert isinstance(found, list)
        assert [one.replaced_at for one in found] == [None, THEN]


def with_another_key(document: dict[str, Any]) -> None:
    document["keys"].append(public_jwk(generate_key()))


def with_a_signature_of_another_key(document: dict[str, Any]) -> None:
    other = generate_key()
    document["keys"].append(public_jwk(other))
    signed = json.loads(history_text([PastKey(other)], [other]))["signatures"]
    document["signatures"][key_id(KEY)] = signed[key_id(other)]


def with_another_time(document: dict[str, Any]) -> None:
    document["keys"][1]["replaced_at"] = "2099-01-01T00:00:00Z"


def with_a_key_less(document: dict[str, Any]) -> None:
    del document["keys"][1]


def without_signatures(document: dict[str, Any]) -> None:
    del document["signatures"]


@pytest.mark.parametrize(
    "change",
    [with_another_key, with_a_signature_of_another_key, with_another_time, with_a_key_less, without_signatures],
)
def test_changed_set_is_a_fault(tmp_path: Path, change: Any) -> None:
    document = json.loads(history_text([PastKey(KEY), PastKey(OLD, THEN)], [KEY]))
    change(document)
    fault = read_history(saved(tmp_path, json.dumps(document)), KEY)
    assert isinstance(fault, Fault)
    assert fault.message.endswith("is not signed by the key in server.pem: it was changed, or belongs to another key")


@rows(
    "text",
    *("", "[]", "7", "{}", '{"keys": {}}', '{"keys": [1]}', '{"keys": [{}]}', "[" * 100_000),
    json.dumps({"keys": [{**public_jwk(KEY), "replaced_at": "yesterday"}]}),
)
def test_invalid_set_is_a_fault(text: str, tmp_path: Path) -> None:
    assert isinstance(parse_history(text), Fault)
    fault = read_history(saved(tmp_path, text), KEY)
    assert isinstance(fault, Fault)
    assert "server.pem.keys.json" in fault.message


@given(st.text(max_size=60))
def test_any_text_is_a_set_or_a_fault(text: str) -> None:
    assert isinstance(parse_history(text), list | Fault)


def test_a_key_is_read_from_its_file(tmp_path: Path) -> None:
    key, path = generate_key(), tmp_path / "key.pem"
    path.write_text(private_text(key))
    read = read_key(path)
    assert isinstance(read, OKPKey)
    assert key_id(read) == key_id(key)
    assert isinstance(read_key(tmp_path / "none.pem"), Fault)


def test_key_round_trips_as_pem_jwk_and_bytes() -> None:
    key = generate_key()
    public = public_jwk(key)
    for text in (private_text(key), json.dumps(public), json.dumps(key.as_dict(private=True)), public["x"]):
        again = parse_key(text)
        assert isinstance(again, OKPKey)
        assert key_id(again) == key_id(key)


@rows(
    "text",
    *("", "no key", "{}", "{", '{"kty":"oct","k":"AAAA"}', '{"kty":"OKP","crv":"X25519","x":"AAAA"}'),
    "-----BEGIN PRIVATE KEY-----",
)
def test_text_that_is_not_an_ed25519_key_is_a_fault(text: str) -> None:
    assert isinstance(parse_key(text), Fault)


def test_key_on_another_curve_and_other_content_are_faults_that_say_what_is_wanted() -> None:
    fault = parse_key(OKPKey.generate_key("Ed448").as_pem(private=True).decode())
    assert isinstance(fault, Fault)
    assert "Ed448" in fault.message
    fault = parse_key("from bespeak import App\n")
    assert isinstance(fault, Fault)
    assert fault.message == "not an Ed25519 key: it is neither PEM, which has a line -----BEGIN ..., nor a JWK"


def test_the_public_half_has_no_private_part_and_reads_back() -> None:
    key = generate_key()
    again = parse_jwk(public_jwk(key))
    assert isinstance(again, OKPKey)
    assert not again.is_private
    assert key_id(again) == key_id(key)
    assert "d" not in public_jwk(again)


@given(st.text(max_size=80))
def test_any_text_is_a_key_or_a_fault(text: str) -> None:
    assert isinstance(parse_key(text), Fault | OKPKey)


@given(st.dictionaries(st.sampled_from(["kty", "crv", "x", "d", "kid", "use"]), st.text() | st.integers() | st.none()))
def test_any_members_are_a_key_or_a_fault(members: dict[str, object]) -> None:
    assert isinstance(parse_jwk({"kty": "OKP", "crv": "Ed25519", **members}), Fault | OKPKey)
