"""An issuer of tokens, a clock that only tests move, and requests with credentials."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry, serialize_compact

from bespeak.protocol.exchange.messages import Connection, Request

AGENT = "ab" * 32
OTHER = "cd" * 32
SERVER = "rooms.example"
NOW = 1_800_000_000.0
Key = OKPKey | ECKey | RSAKey


class Clock:
    """A time that only the test moves."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class _AnyAlgorithm(JWSRegistry):
    """Signs with any algorithm, like a forger."""

    def get_alg(self, name: str) -> Any:
        return self.algorithms[name]


def new_key(kind: str = "Ed25519") -> Key:
    if kind == "RSA":
        return RSAKey.generate_key(2048)
    return OKPKey.generate_key("Ed25519") if kind == "Ed25519" else ECKey.generate_key(kind)  # type: ignore[arg-type]


def public(key: Any, **members: Any) -> dict[str, Any]:
    return {**key.as_dict(private=False), **members}


def jwks(*keys: Mapping[str, Any]) -> str:
    return json.dumps({"keys": list(keys)})


def claims(**changes: Any) -> dict[str, Any]:
    """Return valid claims with changes; None removes one."""
    standard = {"agent_id": AGENT, "aud": SERVER, "exp": int(NOW) + 600, "iat": int(NOW), "scope": "booking:room"}
    return {name: value for name, value in {**standard, **changes}.items() if value is not None}


def sign(key: Any, payload: Mapping[str, Any] | bytes | None = None, *, alg: str = "EdDSA", **header: Any) -> str:
    """Sign a token. `header` adds to the JOSE header."""
    body = payload if isinstance(payload, bytes) else json.dumps(claims() if payload is None else payload).encode()
    return serialize_compact({"alg": alg, **header}, body, key, registry=_AnyAlgorithm(strict_check_header=False))


def unsigned(header: object, payload: object, signature: str = "") -> str:
    """Assemble a token without a signature."""
    return ".".join([encode(json.dumps(header).encode()), encode(json.dumps(payload).encode()), signature])


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: Any) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


def write_keys(path: Path, *keys: Mapping[str, Any]) -> Path:
    path.write_text(jwks(*keys))
    return path


def request(token: str | None = None, *, certificate: bytes | None = None, **headers: str) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if token is not None:
        named["authorization"] = f"Bearer {token}"
    return Request("QUERY", "/rooms", "", named, b"", Connection(certificate=certificate))
