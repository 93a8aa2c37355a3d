"""Which calls wait until another party has confirmed them."""

from __future__ import annotations

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import Composition
from bespeak.contract.policy import Policies


def needs_confirmation(endpoint: Endpoint, policies: Policies) -> bool:
    """Return True if calls of an endpoint need a confirmation: its own setting wins over the policy."""
    if endpoint.confirm is not None:
        return endpoint.confirm
    if isinstance(endpoint.handler, Composition):
        return False  # the policy applies to each of its steps
    # Confirming is irreversible too; if it needed a confirmation, nothing could ever be confirmed.
    return policies.confirm_irreversible and endpoint.semantic.impact == "irreversible" and not endpoint.builtin
