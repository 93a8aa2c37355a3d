"""Keys and configuration that a verification of a trail relies on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bespeak.app.cli.audit import TrailTrust, trust_of
from bespeak.errors import ConfigError
from bespeak.state.identity.key_files import PastKey, history_path, history_text
from bespeak.state.identity.key_text import generate_key, key_id, private_text, public_jwk

KEY, OLD = generate_key(), generate_key()
SERVER = '[server]\nserver_id = "rooms"\noperator = "Acme"\ncontact = "c"\n'


def deployment(folder: Path, more: str = "") -> str:
    (folder / "bespeak.toml").write_text(SERVER + more)
    return str(folder)


def test_nothing_is_known_of_a_trail_without_target_and_keys() -> None:
    assert trust_of(None) == TrailTrust()


@pytest.mark.parametrize(
    ("audit", "sign"),
    [("", "each"), ('[audit]\nsign = "checkpoints"\n', "checkpoints"), ('[audit]\nsign="none"', "none")],
)
def test_key_mode_and_server_come_from_the_configuration(tmp_path: Path, audit: str, sign: str) -> None:
    (tmp_path / "server.pem").write_text(private_text(KEY))
    trust = trust_of(deployment(tmp_path, f'signing_key = "server.pem"\n{audit}'))
    assert set(trust.keys) == {key_id(KEY)}
    assert (trust.expected.sign, trust.expected.server_ids) == (sign, {"rooms"})


def test_configuration_without_a_key_signs_nothing(tmp_path: Path) -> None:
    trust = trust_of(deployment(tmp_path))
    assert (trust.keys, trust.expected.sign) == ({}, "none")


def test_replaced_keys_are_trusted_with_their_end(tmp_path: Path) -> None:
    (tmp_path / "server.pem").write_text(private_text(KEY))
    history = history_path(tmp_path / "server.pem")
    history.write_text(history_text([PastKey(KEY), PastKey(OLD, 7.5)], [KEY]))
    target = deployment(tmp_path, 'signing_key = "server.pem"\n')
    trust = trust_of(target)
    assert (set(trust.keys), trust.expected.replaced) == ({key_id(KEY), key_id(OLD)}, {key_id(OLD): 7.5})
    history.write_text(history_text([PastKey(KEY), PastKey(OLD, 9.5)], [OLD]))
    with pytest.raises(ConfigError, match="Give the keys that you trust with --key"):
        trust_of(target)


def test_given_keys_and_servers_replace_those_of_the_configuration(tmp_path: Path) -> None:
    given = tmp_path / "old.json"
    given.write_text(json.dumps(public_jwk(OLD)))
    target = deployment(tmp_path, 'signing_key = "missing.pem"\n')
    trust = trust_of(target, [given], ["seats"])
    assert (set(trust.keys), trust.expected.sign, trust.expected.server_ids) == ({key_id(OLD)}, "each", {"seats"})
    with pytest.raises(ConfigError, match=r"missing\.pem.* with --key"):
        trust_of(target)
