"""Requirements of stateful methods on the server and the caller."""

from __future__ import annotations

import time
from typing import Any, Final

import msgspec

from bespeak.contract.standard.method import StandardMethod
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


_FURTHEST: Final = 366 * 86400.0
"""Seconds into the future that a time in the input may be."""


def read_future(method: StandardMethod, member: str, text: str) -> float | Refused:
    """Parse a timestamp in the input that must be in the future, or return the refusal that the method declares."""
    seconds, now = read_time(member, text), time.time()
    if isinstance(seconds, Refused) or now < seconds <= now + _FURTHEST:
        return seconds
    fault = "in the past" if seconds <= now else "more than a year away"
    message = f"`{member}` must be in the future; {text[:80]} is {fault}."
    return method.refuse(f"invalid-{member.replace('_', '-')}", message, field=f"/{member}")


def refuse_large(member: str, content: Any, most: int) -> Refused | None:
    """Refuse content that has more bytes as JSON than it may have."""
    return too_large(member, most) if len(msgspec.json.encode(content)) > most else None


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
