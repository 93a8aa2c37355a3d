"""The result of checking the signature of a record or checkpoint."""

from __future__ import annotations

from typing import Literal

from bespeak.state.audit.compact import Compact
from bespeak.state.audit.trusted_keys import TrustedKeys
from bespeak.state.identity.jws import ALGORITHMS, is_signed

SignatureStatus = Literal["good", "unsigned", "unknown-key", "bad", "unchecked"]
"""Result of a signature check. `unchecked`: there is a signature but no key to check it with."""


def judge(compact: Compact, keys: TrustedKeys) -> SignatureStatus:
    """Check a signature."""
    header = compact.header
    if header.alg == "none":
        return "bad" if compact.signature else "unsigned"
    if header.alg not in ALGORITHMS:
        return "bad"
    if not keys:
        return "unchecked"
    key = keys.get(header.kid)
    if key is None:
        return "unknown-key"
    return "good" if is_signed(compact.protected, compact.payload, compact.signature, key) else "bad"
