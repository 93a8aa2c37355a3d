"""What methods that keep state need of a server and of a caller."""

from __future__ import annotations

from bespeak import status
from bespeak.exchange.context import Context
from bespeak.exchange.refusal import Refused
from bespeak.runtime.registry import Registry


def refuse_without_needs(registry: Registry, context: Context) -> Refused | None:
    """501 on a server that keeps no state, 262 for a caller that does not say who it is."""
    if registry.store is None:
        missing = "a store to keep state in"
        message = f"{context.method} is known here but not available, for want of {missing}."
        details = {"method": context.method, "missing": missing}
        return Refused(status.NOT_IMPLEMENTED, "not-implemented", message, details)
    if context.agent_id is None:
        return Refused(
            status.AUTHORIZATION_REQUIRED,
            "authorization-required",
            f"{context.method} is for agents that say who they are; send Agent-ID.",
            {"type": "credentials-missing"},
        )
    return None


def invalid(member: str, fault: str) -> Refused:
    """422 for a member of the input that the schema lets pass and that cannot be used."""
    return Refused(
        status.UNPROCESSABLE, f"invalid-{member.replace('_', '-')}", f"`{member}` {fault}", {"field": f"/{member}"}
    )


def too_large(member: str, most: int) -> Refused:
    """413 for more content than is kept."""
    return Refused(
        status.CONTENT_TOO_LARGE,
        f"{member.replace('_', '-')}-too-large",
        f"`{member}` is kept up to {most // 1024} KiB, and this one is larger.",
        {"field": f"/{member}", "max_bytes": most},
    )
