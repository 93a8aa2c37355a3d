"""SIGN returns a signature that anyone can verify, and that cannot pass for anything else."""

from __future__ import annotations

import pytest
from tests.service import AGENT
from tests.stateful import StatefulBench, keeping

from bespeak.runtime.identity.signer import Signer
from bespeak.state.identity.key_files import trusted
from bespeak.state.identity.key_text import generate_key
from bespeak.state.identity.signed_document import SignedDocument, read_signed

pytestmark = pytest.mark.anyio

KEY = generate_key()
SCOPE = "documents:sign"


def with_key(bench: StatefulBench) -> StatefulBench:
    bench.bench.server.signer = Signer(KEY)
    return bench


@pytest.mark.requirement("METHODS-5.8-3")
async def test_the_signature_says_what_was_signed_for_whom_and_when() -> None:
    async with keeping(methods=("SIGN",)) as kept:
        bench = with_key(kept)
        result = (await bench.send("SIGN", "/", {"payload": {"b": 1, "a": 2}}, authority_scope=SCOPE)).json["result"]
        signed = read_signed(result["signature"], trusted([KEY]))
        assert isinstance(signed, SignedDocument)
        assert (signed.payload, signed.agent_id, signed.signed_at) == ({"b": 1, "a": 2}, AGENT, result["signed_at"])


@pytest.mark.requirement("METHODS-5.8-2", "METHODS-5.8-4")
@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [({"key_id": "x"}, 403, "key-refused"), ({"algorithm": "RS256"}, 422, "unknown-algorithm")],
)
async def test_another_key_or_algorithm_is_refused(fields: dict[str, str], status: int, code: str) -> None:
    async with keeping(methods=("SIGN",)) as kept:
        reply = await with_key(kept).send("SIGN", "/", {"payload": 1, **fields}, authority_scope=SCOPE)
        assert (reply.status, reply.error["code"]) == (status, code)


async def test_signing_needs_a_scope_and_a_key() -> None:
    async with keeping(methods=("SIGN",)) as bench:
        assert (await bench.send("SIGN", "/", {"payload": 1}, authority_scope="a:b")).status == 455
        assert (await bench.send("SIGN", "/", {"payload": 1}, authority_scope=SCOPE)).status == 501
