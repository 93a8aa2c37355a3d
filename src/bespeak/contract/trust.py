"""How far an agent's identity can be trusted: tiers, and the ways by which an identity is verified (core 7.4)."""

from __future__ import annotations

from typing import Final

VERIFIED: Final = 1
ORG_ASSERTED: Final = 2
EXPERIMENTAL: Final = 3
TIERS: Final = (VERIFIED, ORG_ASSERTED, EXPERIMENTAL)
"""The lower the number, the stronger the trust."""

ANCHORED: Final = ("dns-anchored", "log-anchored", "hybrid")
"""Ways with a proof; the first tier needs one of them."""

SELF_SIGNED: Final = "self-signed"
VERIFICATION_PATHS: Final = (*ANCHORED, "org-asserted", SELF_SIGNED)

UNVERIFIED: Final = "verification-incomplete"
"""The trust warning of whatever stands in the second tier."""


def trust_fault(tier: int, path: str | None) -> str | None:
    """Why a tier and a verification path do not go together, or None."""
    if tier == VERIFIED and path not in ANCHORED:
        said = f"the path is {path!r}" if path else "none is given"
        return f"trust tier 1 is for identities verified by {', '.join(ANCHORED)}, and {said}"
    return None


def is_discoverable(tier: int | None) -> bool:
    """Whether an agent may be shown to the public: experiments are not."""
    return tier != EXPERIMENTAL
