"""Trust in an agent's identity: tiers, and the paths by which an identity is verified (core 7.4)."""

from __future__ import annotations

from typing import Final

VERIFIED: Final = 1
ORG_ASSERTED: Final = 2
EXPERIMENTAL: Final = 3
TIERS: Final = (VERIFIED, ORG_ASSERTED, EXPERIMENTAL)
"""Trust tiers: a lower number means stronger trust."""

ANCHORED: Final = ("dns-anchored", "log-anchored", "hybrid")
"""Verification paths with a proof; the first tier needs one of them."""

SELF_SIGNED: Final = "self-signed"
VERIFICATION_PATHS: Final = (*ANCHORED, "org-asserted", SELF_SIGNED)

UNVERIFIED: Final = "verification-incomplete"
"""Trust warning of the second tier."""


def trust_fault(tier: int, path: str | None) -> str | None:
    """Return why a tier and a verification path do not fit together, or None."""
    if tier == VERIFIED and path not in ANCHORED:
        said = f"the path is {path!r}" if path else "none is given"
        return f"trust tier 1 is for identities verified by {', '.join(ANCHORED)}; {said}"
    return None


def is_discoverable(tier: int | None) -> bool:
    """Return True if an agent may be shown to the public; experimental ones may not."""
    return tier != EXPERIMENTAL
