"""Public halves of a key and of its predecessors, in a JWK set beside the key file, so that old signatures verify.

The current key signs the set: whoever can write the file cannot add a key to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from joserfc.jwk import OKPKey

from bespeak.protocol.exchange.base64url import encode64
from bespeak.protocol.exchange.instant import read_instant, write_milliseconds
from bespeak.protocol.fault import Fault
from bespeak.state.identity.jws import PrivateKey, PublicKey, is_signed
from bespeak.state.identity.key_text import key_id, parse_jwk, public_jwk
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.json_data import decode_json
from bespeak.text.reading.text_file import read_text

_SUFFIX: Final = ".keys.json"
_MOST: Final = 1000
_PURPOSE: Final = encode64(b"bespeak-key-history/1").decode()
"""First part of the signed text, so that nothing signed for another purpose passes for a set."""


class PastKey(msgspec.Struct, frozen=True):
    """A key of the set."""

    key: OKPKey
    replaced_at: float | None = None
    """Time at which it was replaced, in seconds since 1970; None for the current key."""


def history_path(key_file: Path) -> Path:
    """Return the path of the set for a key file: `server.pem.keys.json` beside `server.pem`."""
    return key_file.with_name(key_file.name + _SUFFIX)


def read_history(key_file: Path, key: OKPKey) -> list[PastKey] | Fault:
    """Read the set beside a key file, newest key first; empty if the key was never replaced.

    `key` is the current key. A set that it has not signed is a fault.
    """
    path = history_path(key_file)
    if not path.exists():
        return []
    text = read_text(path)
    if isinstance(text, Diagnostic):
        return Fault(f"{path}: {text.message}")
    keys = parse_history(text)
    if isinstance(keys, Fault):
        return Fault(f"{path}: {keys.message}")
    document = msgspec.json.decode(text)
    signatures = document.get("signatures")
    signature = signatures.get(key_id(key)) if isinstance(signatures, dict) else None
    public = key.public_key
    assert isinstance(public, PublicKey)
    if not isinstance(signature, str) or not is_signed(_PURPOSE, _content(document["keys"]), signature, public):
        return Fault(f"{path} is not signed by the key in {key_file.name}: it was changed, or belongs to another key")
    return keys


def parse_history(text: str) -> list[PastKey] | Fault:
    """Parse the Ed25519 keys of a JWK set, without duplicates. An unreadable one is an error: none may be lost.

    Its signature is not verified.
    """
    try:
        document = decode_json(text)
    except (ValueError, RecursionError) as error:
        return Fault(f"not JSON: {error}")
    members = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(members, list) or len(members) > _MOST:
        return Fault(f"not a JWK set, an object with a list `keys` of up to {_MOST}")
    found: dict[str, PastKey] = {}
    for number, entry in enumerate(members):
        key = parse_jwk(entry) if isinstance(entry, dict) else Fault("not an object")
        if isinstance(key, Fault):
            return Fault(f"key {number + 1} of the set: {key.message}")
        replaced = entry.get("replaced_at")
        replaced_at = read_instant(replaced) if isinstance(replaced, str) else None
        if replaced is not None and replaced_at is None:
            return Fault(f"key {number + 1} of the set: `replaced_at` is not a valid time")
        found.setdefault(key_id(key), PastKey(key, replaced_at))
    return list(found.values())


def history_text(keys: Iterable[PastKey], signers: Iterable[OKPKey]) -> str:
    """Write the set with the public halves of keys, without duplicates, in the given order.

    `signers` are the private keys of which one will be the current one.
    """
    members: dict[str, dict[str, str]] = {}
    for one in keys:
        replaced = {} if one.replaced_at is None else {"replaced_at": write_milliseconds(one.replaced_at)}
        members.setdefault(key_id(one.key), {**public_jwk(one.key), **replaced})
    listed = list(members.values())
    document = {"keys": listed, "signatures": {key_id(key): _sign(listed, key) for key in signers}}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _sign(members: list[dict[str, str]], key: OKPKey) -> str:
    private = key.private_key
    assert isinstance(private, PrivateKey)
    return encode64(private.sign(_PURPOSE.encode() + b"." + encode64(_content(members)))).decode()


def _content(members: list[Mapping[str, Any]] | list[dict[str, str]]) -> bytes:
    return msgspec.json.encode(members, order="sorted")
