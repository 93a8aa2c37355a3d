"""Ed25519 keys as texts: PEM, JWK, or the bytes of a public key in base64url."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from joserfc.errors import JoseError
from joserfc.jwk import OKPKey

from bespeak.protocol.exchange.refusal import Fault
from bespeak.text.reading.json_data import decode_json

_CURVE: Final = "Ed25519"
_PEM: Final = "-----BEGIN "
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
        if isinstance(material, str) and _PEM not in material:
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
