"""What a verification of an audit trail can rely on: the keys and the configuration of a deployment, or given keys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from bespeak.app.server.state import server_document
from bespeak.errors import ConfigError
from bespeak.protocol.fault import Fault
from bespeak.state.audit.expectation import Expectation
from bespeak.state.audit.trusted_keys import TrustedKeys, parse_keys, trusted
from bespeak.state.identity.key_file import read_key
from bespeak.state.identity.key_history import read_history
from bespeak.state.identity.key_text import key_id
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.text_file import read_text


@dataclass(frozen=True, slots=True)
class TrailTrust:
    """The keys that may have signed a trail, and what the configuration says about it."""

    keys: TrustedKeys = field(default_factory=dict)
    expected: Expectation = field(default_factory=Expectation)
    is_off: bool = False
    """True if the configuration says that nothing is recorded."""


def trust_of(target: str | None, key_files: Iterable[Path] = (), server_ids: Iterable[str] = ()) -> TrailTrust:
    """Return what to rely on for the trail of a target; None for a trail whose configuration is not known.

    `key_files` replace the keys of the configuration, `server_ids` its server_id.
    """
    given: dict[str, TrustedKeys] = {str(file): _read_keys(file) for file in key_files}
    trust = TrailTrust() if target is None else _configured(target, with_keys=not given)
    if given:
        trust = replace(trust, keys={kid: key for keys in given.values() for kid, key in keys.items()})
    ids = frozenset(server_ids)
    return replace(trust, expected=replace(trust.expected, server_ids=ids)) if ids else trust


def _configured(target: str, *, with_keys: bool) -> TrailTrust:
    document = server_document(target)
    path = document.signing_key
    ids = frozenset({document.main.server_id} if document.main.server_id else ())
    sign = document.audit.sign or ("each" if path is not None else "none")
    expected = Expectation(sign, ids)
    is_off = document.audit.recording(lasting=True) == "off"
    if path is None or not with_keys:
        return TrailTrust(expected=expected, is_off=is_off)
    key = read_key(path)
    if isinstance(key, Fault):
        raise ConfigError(f"signing_key {path}: {key.message}. Give the public keys of the server with --key.")
    history = read_history(path, key)
    if isinstance(history, Fault):
        raise ConfigError(f"{history.message}. Give the keys that you trust with --key.")
    replaced = {key_id(one.key): one.replaced_at for one in history if one.replaced_at is not None}
    replaced.pop(key_id(key), None)
    return TrailTrust(trusted([*(one.key for one in history), key]), replace(expected, replaced=replaced), is_off)


def _read_keys(file: Path) -> TrustedKeys:
    text = read_text(file)
    if isinstance(text, Diagnostic):
        raise ConfigError(f"{file}: {text.message}")
    keys = parse_keys(text)
    if isinstance(keys, Fault):
        raise ConfigError(f"{file}: {keys.message}")
    return keys
