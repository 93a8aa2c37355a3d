"""Requirements of stateful methods on the server and the caller."""

from __future__ import annotations

from typing import Final

from bespeak.protocol import status
from bespeak.protocol.exchange.instant import read_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall

STORE: Final = "a store to keep state in"
RESOURCES: Final = "resources to search"
"""What a server may lack, as refusals and published documents call it."""


def refuse_without_needs(call: RoutedCall) -> Refused | None:
    """Refuse with 501 on a server without a store, with 262 for an anonymous caller."""
    if call.server.store is None:
        return not_available(call.method, STORE)
    if call.agent_id is None:
        return call.server.principals.credentials_missing(f"{call.method} requires an identified agent")
    return None


def not_available(method: str, missing: str, advice: str = "") -> Refused:
    """Build a 501 that names what a method requires."""
    message = f"{method} is not available on this server: it requires {missing}.{advice}"
    return Refused(status.NOT_IMPLEMENTED, "not-implemented", message, {"method": method, "missing": missing})


def read_time(member: str, text: str) -> float | Refused:
    """Parse a timestamp in the input into seconds since 1970, or return a refusal."""
    seconds = read_instant(text)
    if seconds is None:
        return invalid(member, f"is {text[:80]!r}, which is not a valid time; write it like 2026-11-16T08:00:00Z.")
    return seconds


def invalid(member: str, fault: str) -> Refused:
    """Build a 422 for a member of the input that passes the schema but cannot be used."""
    return Refused(
        status.UNPROCESSABLE, f"invalid-{member.replace('_', '-')}", f"`{member}` {fault}", {"field": f"/{member}"}
    )


def too_large(member: str, most: int) -> Refused:
    """Build a 413 for content beyond the limit."""
    return Refused(
        status.CONTENT_TOO_LARGE,
        f"{member.replace('_', '-')}-too-large",
        f"`{member}` must not be larger than {most // 1024} KiB.",
        {"field": f"/{member}", "max_bytes": most},
    )
