"""A service with its state: what works from the start on, and what ends with it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from joserfc import jwt
from joserfc.jwk import OKPKey
from tests.service import AGENT, make_endpoint
from tests.stateful import keeping

from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.errors import StoreUnavailableError
from bespeak.state.identity.settings import AuthSettings, TokenSettings
from bespeak.state.store.commands.idempotency import UseNonce

pytestmark = pytest.mark.anyio

FIND = make_endpoint("FIND", "/room", lambda: {"free": True}, scopes=("booking:room",))


def token(key: OKPKey, **claims: object) -> str:
    given = {"agent_id": AGENT, "scope": "booking:room", "aud": "test.example", "exp": time.time() + 60, **claims}
    return jwt.encode({"alg": "Ed25519"}, given, key, algorithms=["Ed25519"])


async def test_callers_are_authenticated_if_configured(tmp_path: Path) -> None:
    key = OKPKey.generate_key("Ed25519")
    (tmp_path / "keys.pem").write_bytes(key.as_pem(private=False))
    document = ServerDocument(auth=AuthSettings(modes=("token",), token=TokenSettings(keys=tmp_path / "keys.pem")))
    async with keeping(FIND, document=document) as bench:
        claimed = await bench.send("FIND", "/room", authority_scope="booking:room")
        assert (claimed.status, claimed.error["code"]) == (401, "agent-unauthenticated")
        proven = await bench.send("FIND", "/room", authorization=f"Bearer {token(key)}")
        assert proven.status == 200
        wider = await bench.send("FIND", "/room", authorization=f"Bearer {token(key)}", authority_scope="booking:*")
        assert (wider.status, wider.error["code"]) == (262, "scope-claim-invalid")


async def test_new_keys_are_taken_in_while_the_server_runs(tmp_path: Path) -> None:
    first, second = OKPKey.generate_key("Ed25519"), OKPKey.generate_key("Ed25519")
    file = tmp_path / "keys.pem"
    file.write_bytes(first.as_pem(private=False))
    document = ServerDocument(auth=AuthSettings(modes=("token",), token=TokenSettings(keys=file)))
    async with keeping(FIND, document=document) as bench:
        assert (await bench.send("FIND", "/room", authorization=f"Bearer {token(first)}")).status == 200
        forged = await bench.send("FIND", "/room", authorization=f"Bearer {token(second)}")
        assert forged.status == 401


async def test_the_store_is_closed_with_its_server() -> None:
    async with keeping(FIND) as bench:
        store = bench.store
    with pytest.raises(StoreUnavailableError):
        await store.do(UseNonce("x", "y", 1.0))
