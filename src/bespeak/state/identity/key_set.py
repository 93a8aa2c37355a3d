"""The public keys of a token issuer, from a JWK, a JWK set or PEM blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, SECP384R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey

from bespeak.protocol.fault import Fault
from bespeak.state.identity.jws import ALGORITHM, ALGORITHMS
from bespeak.text.reading.json_data import decode_json

MAX_BYTES: Final = 256 * 1024
_MOST_KEYS: Final = 100
_MOST_TRIED: Final = 8
"""Limit of keys tried for a token that does not name its key, so that it cannot cost a hundred verifications."""
_RSA_BITS: Final = range(2048, 8193)
"""Allowed RSA key lengths: shorter keys can be broken; longer ones cost the verifier more than they give."""

_BEGIN: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,40})-----\s")
_LONGEST_BLOCK: Final = 20_000
_BAD: Final = (JoseError, ValueError, TypeError, AttributeError, KeyError, ArithmeticError, UnsupportedAlgorithm)
"""Exceptions of the libraries for malformed keys."""

PublicKey = OKPKey | ECKey | RSAKey


class VerificationKey(msgspec.Struct, frozen=True):
    """A public key and the algorithms it is for."""

    key: PublicKey
    algorithms: frozenset[str]
    kid: str | None = None


class KeySet:
    """Verification keys. Immutable; a rotation makes a new set."""

    __slots__ = ("_keys",)

    def __init__(self, keys: Iterable[VerificationKey] = ()) -> None:
        self._keys = tuple(keys)

    def __len__(self) -> int:
        return len(self._keys)

    def names(self, kid: str | None) -> bool:
        """Return True if a key has this id."""
        return kid is not None and any(key.kid == kid for key in self._keys)

    def find(self, kid: str | None, algorithm: str) -> list[PublicKey]:
        """Return the candidate keys for a token header; a header without a key id fits any."""
        fitting = [key for key in self._keys if algorithm in key.algorithms]
        named = [key.key for key in fitting if kid is not None and key.kid == kid]
        return (named or [key.key for key in fitting if kid is None or key.kid is None])[:_MOST_TRIED]


def parse_key_set(text: str) -> KeySet | Fault:
    """Parse the keys in a text. Unusable keys of a set are skipped, as RFC 7517 5 requires."""
    if len(text) > MAX_BYTES:
        return Fault(f"a key set has at most {MAX_BYTES} bytes")
    found: list[VerificationKey] = []
    faults: list[str] = []
    for key in _from_json(text) if text.lstrip()[:1] == "{" else _from_pem(text):
        if isinstance(key, Fault):
            faults.append(key.message)
        else:
            found.append(key)
    if len(found) > _MOST_KEYS:
        return Fault(f"a key set has at most {_MOST_KEYS} keys")
    if found:
        return KeySet(found)
    return Fault(faults[0] if faults else "no public key in it: give a JWK, a JWK set or PEM")


def _from_json(text: str) -> Iterator[VerificationKey | Fault]:
    try:
        document = decode_json(text)
    except (ValueError, RecursionError):
        yield Fault("not JSON")
        return
    members = document.get("keys", [document])
    for entry in members[: 2 * _MOST_KEYS] if isinstance(members, list) else ():
        yield _from_jwk(entry) if isinstance(entry, dict) else Fault("a key that is not an object")


def _from_jwk(entry: Mapping[str, Any]) -> VerificationKey | Fault:
    kind, kid, use = entry.get("kty"), entry.get("kid"), entry.get("use", "sig")
    operations = entry.get("key_ops", ["verify"])
    if kind == "oct":
        return Fault("a shared secret, with which every verifier could also sign: give public keys")
    if "d" in entry:
        return Fault("a private key, which a server that only verifies must not have: give its public half")
    if use != "sig" or not isinstance(operations, list) or "verify" not in operations:
        return Fault("a key that is not for signatures")
    if kid is not None and not isinstance(kid, str):
        return Fault("a key whose kid is not a string")
    types: dict[Any, type[PublicKey]] = {"OKP": OKPKey, "EC": ECKey, "RSA": RSAKey}
    if not isinstance(kind, str) or kind not in types:
        return Fault("a key of an unknown type")
    if kind == "RSA" and not _fits(entry.get("n")):
        return Fault(_WEAK)
    material = {name: entry[name] for name in ("kty", "crv", "x", "y", "n", "e") if name in entry}
    try:
        key = types[kind].import_key(material)
        return _classified(key, kid, entry.get("alg"))
    except _BAD:
        return Fault(f"a broken {kind} key")


_WEAK: Final = f"an RSA key outside {_RSA_BITS.start} to {_RSA_BITS.stop - 1} bits"


def _fits(modulus: object) -> bool:
    """Return True if the base64url modulus has an allowed length; checked before the library complains."""
    return isinstance(modulus, str) and len(modulus.rstrip("=")) * 6 // 8 * 8 in _RSA_BITS


def _from_pem(text: str) -> Iterator[VerificationKey | Fault]:
    done = 0
    for begin in _BEGIN.finditer(text):
        # Not by one expression for the whole: a text of beginnings alone would keep it busy for seconds.
        last = f"-----END {begin[1]}-----"
        end = text.find(last, begin.end(), begin.end() + _LONGEST_BLOCK)
        if begin.start() < done or end < 0:
            continue
        done = end + len(last)
        if "PRIVATE" in begin[1]:
            yield Fault("a private key, which a server that only verifies must not have: give its public half")
        elif "PUBLIC KEY" not in begin[1]:
            yield Fault(f"a {begin[1].lower()} where a public key is wanted")
        else:
            yield _from_block(text[begin.start() : done].encode())


def _from_block(block: bytes) -> VerificationKey | Fault:
    try:
        raw = load_pem_public_key(block)
        if isinstance(raw, RSAPublicKey):
            return _classified(RSAKey.import_key(block), None, None) if raw.key_size in _RSA_BITS else Fault(_WEAK)
        if isinstance(raw, EllipticCurvePublicKey) and isinstance(raw.curve, SECP256R1 | SECP384R1):
            return _classified(ECKey.import_key(block), None, None)
        if isinstance(raw, Ed25519PublicKey):
            return _classified(OKPKey.import_key(block), None, None)
    except _BAD:
        return Fault("a broken PEM key")
    return Fault("a key of an unsupported type or curve")


_OF_CURVE: Final = {"Ed25519": ALGORITHMS, "P-256": {"ES256"}, "P-384": {"ES384"}}
_OF_RSA: Final = {"RS256", "PS256"}


def _classified(key: PublicKey, kid: str | None, algorithm: object) -> VerificationKey | Fault:
    """Return a key with the algorithms of its type, restricted to the one it names."""
    fitting = _OF_RSA if isinstance(key, RSAKey) else _OF_CURVE.get(key.curve_name, set())
    if algorithm is not None and algorithm not in ALGORITHMS:
        fitting = {name for name in fitting if name == algorithm}
    if not fitting or (algorithm in ALGORITHMS and ALGORITHM not in fitting):
        return Fault("a key of an unsupported curve or algorithm")
    # The library reads a public key lazily; here it would fail, not later under a request.
    key.public_key  # noqa: B018
    return VerificationKey(key, frozenset(fitting), kid)
