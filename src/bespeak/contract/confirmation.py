"""Which calls wait until another party has confirmed them."""

from __future__ import annotations

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import Composition
from bespeak.contract.policy import Policies


def needs_confirmation(endpoint: Endpoint, policies: Policies) -> bool:
    """Return True if calls of an endpoint need a confirmation: its own setting wins over the policy."""
    if endpoint.confirm is not None:
        return endpoint.confirm
    if endpoint.passes_on or isinstance(endpoint.handler, Composition):
        return False  # the policy applies to each of its steps
    # Confirming is irreversible too; if it needed a confirmation, nothing could ever be confirmed.
    return policies.confirm_irreversible and endpoint.semantic.impact == "irreversible" and not endpoint.is_basic


def asks_person(endpoint: Endpoint, policies: Policies) -> bool:
    """Return True if a person confirms a call that a model makes: it cannot be undone, or needs a confirmation anyway.

    Faces for models ask for it unless the endpoint itself says that no confirmation is needed.
    """
    irreversible = endpoint.semantic.impact == "irreversible" and endpoint.confirm is None
    return irreversible or needs_confirmation(endpoint, policies)
