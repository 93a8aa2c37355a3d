"""What the signature of a record or a checkpoint is worth."""

from __future__ import annotations

from typing import Literal

from bespeak.state.audit.compact import Compact
from bespeak.state.audit.trusted_keys import TrustedKeys
from bespeak.state.identity.jws import ALGORITHMS, is_signed

Verdict = Literal["good", "unsigned", "unknown-key", "bad", "unchecked"]
"""`unchecked`: there is a signature, and no key at all to check it with."""


def judge(compact: Compact, keys: TrustedKeys) -> Verdict:
    """What the signature is worth."""
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
