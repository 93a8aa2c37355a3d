"""Ed25519 keys in files: the signing key, and a JWK set with its predecessors, so that old signatures verify."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec
from joserfc.jwk import OKPKey

from bespeak.errors import ConfigError
from bespeak.protocol.exchange.header_values import encode64
from bespeak.protocol.exchange.instant import read_instant, write_milliseconds
from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.identity import jws as jose
from bespeak.state.identity.jws import ALGORITHM, ALGORITHMS, Jws, PrivateKey, PublicKey, is_signed, key_id
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.json_data import decode_json
from bespeak.text.reading.text_file import read_text

_MOST: Final = 1000
_PURPOSE: Final = encode64(b"bespeak-key-history/1").decode()
"""First part of the signed text, so that nothing signed for another purpose passes for a set."""
TrustedKeys: TypeAlias = Mapping[str, PublicKey]  # public keys by id
SignatureStatus = Literal["good", "unsigned", "unknown-key", "bad", "unchecked"]
"""Result of a signature check. `unchecked`: there is a signature but no key to check it with."""


def read_key(path: Path) -> OKPKey | Fault:
    """Read the key in a file, or return the error."""
    text = read_text(path)
    return Fault(text.message) if isinstance(text, Diagnostic) else jose.parse_key(text)


class PastKey(msgspec.Struct, frozen=True):
    key: OKPKey
    replaced_at: float | None = None  # time at which it was replaced, in seconds since 1970; None for the current key


def history_path(key_file: Path) -> Path:
    """Return the path of the set for a key file: `server.pem.keys.json` beside `server.pem`."""
    return key_file.with_name(key_file.name + ".keys.json")


def read_history(key_file: Path, key: OKPKey) -> list[PastKey] | Fault:
    """Read the set beside a key file, newest key first; empty without one. It must be signed by the current `key`."""
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
    """Parse the distinct keys of a JWK set, not its signature. An unreadable one is an error: none may be lost."""
    try:
        document = decode_json(text)
    except (ValueError, RecursionError) as error:
        return Fault(f"not JSON: {error}")
    members = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(members, list) or len(members) > _MOST:
        return Fault(f"not a JWK set, an object with a list `keys` of up to {_MOST}")
    found: dict[str, PastKey] = {}
    for number, entry in enumerate(members):
        key = jose.parse_jwk(entry) if isinstance(entry, dict) else Fault("not an object")
        if isinstance(key, Fault):
            return Fault(f"key {number + 1} of the set: {key.message}")
        replaced = entry.get("replaced_at")
        replaced_at = read_instant(replaced) if isinstance(replaced, str) else None
        if replaced is not None and replaced_at is None:
            return Fault(f"key {number + 1} of the set: `replaced_at` is not a valid time")
        found.setdefault(key_id(key), PastKey(key, replaced_at))
    return list(found.values())


def history_text(keys: Iterable[PastKey], signers: Iterable[OKPKey]) -> str:
    """Write the set with the public halves of keys, in this order; one of the `signers` will be the current key."""
    members: dict[str, dict[str, str]] = {}
    for one in keys:
        replaced = {} if one.replaced_at is None else {"replaced_at": write_milliseconds(one.replaced_at)}
        members.setdefault(key_id(one.key), {**jose.public_jwk(one.key), **replaced})
    listed = list(members.values())
    document = {"keys": listed, "signatures": {key_id(key): _sign(listed, key) for key in signers}}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _sign(members: list[dict[str, str]], key: OKPKey) -> str:
    private = key.private_key
    assert isinstance(private, PrivateKey)
    return encode64(private.sign(_PURPOSE.encode() + b"." + encode64(_content(members)))).decode()


def _content(members: list[Mapping[str, Any]] | list[dict[str, str]]) -> bytes:
    return msgspec.json.encode(members, order="sorted")


def trusted(keys: Iterable[OKPKey]) -> dict[str, PublicKey]:
    """Index keys by id. The id derives from the key, so a file cannot rename a key."""
    found: dict[str, PublicKey] = {}
    for key in keys:
        public = key.public_key
        assert isinstance(public, PublicKey)
        found[key_id(key)] = public
    return found


def parse_keys(text: str) -> dict[str, PublicKey] | Fault:
    """Parse the Ed25519 keys in a text: a JWK set, one JWK, PEM, or a raw public key in base64url."""
    if '"keys"' in text:
        keys = parse_history(text)
        if isinstance(keys, Fault):
            return keys
        return trusted(one.key for one in keys) if keys else Fault("the key set is empty")
    key = jose.parse_key(text)
    return key if isinstance(key, Fault) else trusted([key])


def check_signature(jws: Jws, keys: TrustedKeys) -> SignatureStatus:
    if jws.header["alg"] == "none":
        return "bad" if jws.signature else "unsigned"
    if jws.header["alg"] not in ALGORITHMS:
        return "bad"
    if not keys:
        return "unchecked"
    key = keys.get(jws.key_id)
    if key is None:
        return "unknown-key"
    return "good" if jws.is_by(key) else "bad"


class SigningKey:
    __slots__ = ("_key", "kid")

    def __init__(self, key: OKPKey) -> None:
        private = key.private_key
        if not isinstance(private, PrivateKey):
            raise ConfigError("records are signed with a private Ed25519 key; this is only a public key")
        self._key = private
        self.kid = key_id(key)

    def __repr__(self) -> str:
        return f"SigningKey({self.kid})"

    def header(self, kind: str) -> dict[str, Any]:
        return {"alg": ALGORITHM, "typ": kind, "kid": self.kid}

    def sign(self, content: bytes) -> bytes:
        """Append the signature to `content`, the encoded header and payload of a JWS."""
        return content + b"." + encode64(self._key.sign(content))
