"""Compact JWS with Ed25519 (RFC 7515, RFC 8037), directly on `cryptography`, because requests are signed with it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from joserfc.errors import JoseError
from joserfc.jwk import OKPKey

from bespeak.protocol.exchange.header_values import decode64, encode64
from bespeak.protocol.exchange.refusal import Fault
from bespeak.text.reading.json_data import decode_as, decode_json

PrivateKey: TypeAlias = Ed25519PrivateKey
PublicKey: TypeAlias = Ed25519PublicKey
ALGORITHM: Final = "EdDSA"
ALGORITHMS: Final = frozenset({ALGORITHM, "Ed25519"})  # two names of one algorithm: RFC 8037, and RFC 9864
_PARTS: Final = 3
_LONGEST_HEADER: Final = 4096
_EXTENSIONS: Final = ("crit", "b64")  # change the meaning of a token (RFC 7515 4.1.11, RFC 7797); none is supported
_T = TypeVar("_T")


class Jws(msgspec.Struct, frozen=True):
    """A compact JWS with one reading, whose signature is not verified."""

    protected: str
    header: Mapping[str, Any]  # members of the header: `alg` is a string, and so are `typ` and `kid` if they are there
    payload: bytes
    signature: str

    @property
    def parts(self) -> tuple[str, str, str]:
        return self.protected, encode64(self.payload).decode(), self.signature

    @property
    def key_id(self) -> str:
        """Id of the key, as the header claims it; empty without one."""
        return str(self.header.get("kid", ""))

    def is_by(self, key: PublicKey) -> bool:
        """Return True if the key has signed header and payload."""
        return is_signed(self.protected, self.payload, self.signature, key)

    def read_payload(self, decoder: msgspec.json.Decoder[_T]) -> _T | Fault:
        """Decode the payload; no object in it may have a member twice."""
        try:
            return decode_as(decoder, self.payload)
        except (ValueError, RecursionError) as error:  # msgspec's errors, and bytes that are not UTF-8
            return Fault(f"its payload is not what it should be: {error}")


def parse_jws(
    text: str,
    *,
    longest: int,
    typ: str | None = None,
    algorithms: Collection[str] | None = ALGORITHMS,
    content: bytes | None = None,
) -> Jws | Fault:
    """Read a compact JWS strictly, without verifying it. Every reader of tokens and signatures begins with this.

    `content` is that of a JWS whose payload is detached (RFC 7515, appendix F). With None for `typ` or `algorithms`,
    the caller judges these itself.
    """
    if len(text) > longest:
        return Fault(f"it has {len(text)} characters; at most {longest} are read")
    parts = text.split(".", _PARTS)
    if len(parts[0]) > _LONGEST_HEADER:
        return Fault(f"its header has more than {_LONGEST_HEADER} characters")
    raw = [decode64(part) for part in parts] if len(parts) == _PARTS else [None]
    if None in raw:
        return Fault("it is not a compact JWS, 'header.payload.signature' in base64url without padding")
    payload = raw[1] or b""
    if content is None and not payload:
        return Fault("it has no payload")
    if content is not None and payload not in (b"", content):
        return Fault("its payload is not the content that it is for")
    try:
        header = decode_json(raw[0] or b"")
    except (ValueError, RecursionError) as error:
        return Fault(f"its header is not valid JSON: {error}")
    fault = _judge_header(header, typ, algorithms)
    return fault or Jws(parts[0], header, payload if content is None else content, parts[2])


def read_token(text: str, decoder: msgspec.json.Decoder[_T], *, longest: int, typ: str) -> tuple[Jws, _T] | Fault:
    """Read a compact JWS of a type and its payload, without verifying it."""
    jws = parse_jws(text, longest=longest, typ=typ)
    if isinstance(jws, Fault):
        return jws
    content = jws.read_payload(decoder)
    return content if isinstance(content, Fault) else (jws, content)


def _judge_header(header: Any, typ: str | None, algorithms: Collection[str] | None) -> Fault | None:
    if not isinstance(header, dict):
        return Fault("its header is not a JSON object")
    extension = next((name for name in _EXTENSIONS if name in header), None)
    if extension is not None:
        return Fault(f"its header has `{extension}`, an extension that is not known here")
    if "alg" not in header or not all(isinstance(header.get(name, ""), str) for name in ("alg", "typ", "kid")):
        return Fault("its header must have `alg`, and `alg`, `typ` and `kid` must be strings")
    if algorithms is not None and header["alg"] not in algorithms:
        return Fault(f"its algorithm is {header['alg'][:40]!r}, not {' or '.join(sorted(algorithms))}")
    if typ is not None and header.get("typ") != typ:
        return Fault(f"its type is {header.get('typ', '')[:40]!r}, not {typ!r}")
    return None


def sign_compact(header: Mapping[str, Any] | msgspec.Struct, payload: bytes, key: PrivateKey) -> str:
    """Return the token `header.payload.signature`."""
    content = encode64(msgspec.json.encode(header)) + b"." + encode64(payload)
    return (content + b"." + encode64(key.sign(content))).decode()


def sign_detached(header: Mapping[str, Any] | msgspec.Struct, payload: bytes, key: PrivateKey) -> str:
    """Return the token `header..signature` with detached payload (RFC 7515, appendix F)."""
    protected, _, signature = sign_compact(header, payload, key).split(".")
    return f"{protected}..{signature}"


def is_signed(protected: str, payload: bytes, signature: str, key: PublicKey) -> bool:
    """Return True if the signature by the key matches this encoded header and payload."""
    raw = decode64(signature)
    if raw is None or len(raw) != 64:
        return False
    try:
        key.verify(raw, protected.encode() + b"." + encode64(payload))
    except (InvalidSignature, UnicodeEncodeError):
        return False
    return True


_CURVE: Final = "Ed25519"
_RAW: Final = re.compile(r"[A-Za-z0-9_-]{43}")


def generate_key() -> OKPKey:
    return OKPKey.generate_key(_CURVE)


def parse_key(text: str) -> OKPKey | Fault:
    bare = text.strip()
    if _RAW.fullmatch(bare):
        return parse_jwk({"kty": "OKP", "crv": _CURVE, "x": bare})
    if bare.startswith("{"):
        try:
            return parse_jwk(decode_json(bare))
        except (ValueError, RecursionError) as error:
            return Fault(f"not JSON: {error}")
    return _import_key(text)


def parse_jwk(members: Mapping[str, Any]) -> OKPKey | Fault:
    """Parse an Ed25519 key, private or public, from the members of a JWK."""
    return _import_key(dict(members))


def _import_key(material: str | dict[str, Any]) -> OKPKey | Fault:
    try:
        key = OKPKey.import_key(material)
        curve = key.curve_name
    except (JoseError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        if isinstance(material, str) and "-----BEGIN " not in material:
            return Fault("not an Ed25519 key: it is neither PEM, which has a line -----BEGIN ..., nor a JWK")
        return Fault(f"not an Ed25519 key in PEM or JWK form: {error}")
    return key if curve == _CURVE else Fault(f"the key is on the curve {curve}, not {_CURVE}")


def key_id(key: OKPKey) -> str:
    """Return the id of the key: its thumbprint (RFC 7638)."""
    return key.thumbprint()


def private_text(key: OKPKey) -> str:
    return key.as_pem(private=True).decode("ascii")


def public_jwk(key: OKPKey) -> dict[str, str]:
    """Return the public half as the members of a JWK, with its `kid`."""
    members = {name: str(value) for name, value in key.as_dict(private=False).items() if name in ("crv", "kty", "x")}
    return {**members, "kid": key_id(key)}
