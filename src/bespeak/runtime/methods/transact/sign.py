"""SIGN: a timestamped signature with the key of the server (Tier 2 5.8)."""

from __future__ import annotations

import hashlib
import time
from typing import Final

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.methods.needs import not_available, refuse_without_needs, too_large

MOST_PAYLOAD: Final = 256 * 1024
"""Maximum bytes of what is signed."""
ALGORITHMS: Final = ("EdDSA", "Ed25519")
KEY: Final = "a signing key: [server] signing_key"
_SIGN: Final = STANDARD["SIGN"]


def sign(call: RoutedCall) -> Envelope | Refused:
    """Answer SIGN /."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    signer, given = call.server.signer, call.input
    if signer is None:
        return not_available("SIGN", KEY)
    if given.get("key_id", signer.key_id) != signer.key_id:
        message = f"This server signs with the key {signer.key_id} only."
        return _SIGN.refuse("key-refused", message, key_id=signer.key_id)
    algorithm = given.get("algorithm", ALGORITHMS[0])
    if algorithm not in ALGORITHMS:
        message = f"{algorithm[:40]!r} is not an algorithm of this key; it has {' and '.join(ALGORITHMS)}."
        return _SIGN.refuse("unknown-algorithm", message, algorithms=list(ALGORITHMS))
    # They load cryptography, which most servers do without.
    from bespeak.state.identity.signed_document import SignedDocument, canonical, write_signed  # noqa: PLC0415

    payload, now = canonical(given["payload"]), write_instant(time.time())
    if len(payload) > MOST_PAYLOAD:
        return too_large("payload", MOST_PAYLOAD)
    server_id = call.routes.service.identity.server_id
    document = SignedDocument(given["payload"], call.agent_id or "", server_id, now)
    return Envelope(
        {
            "signature": write_signed(document, signer.private_key, signer.key_id, algorithm),
            "key_id": signer.key_id,
            "algorithm": algorithm,
            "signed_at": now,
            "digest": f"sha256:{hashlib.sha256(payload).hexdigest()}",
        }
    )
