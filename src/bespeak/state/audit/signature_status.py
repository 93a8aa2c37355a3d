"""The result of checking the signature of a record or checkpoint."""

from __future__ import annotations

from typing import Literal

from bespeak.state.audit.trusted_keys import TrustedKeys
from bespeak.state.identity.jws import ALGORITHMS, Jws

SignatureStatus = Literal["good", "unsigned", "unknown-key", "bad", "unchecked"]
"""Result of a signature check. `unchecked`: there is a signature but no key to check it with."""


def judge(jws: Jws, keys: TrustedKeys) -> SignatureStatus:
    """Check a signature."""
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
