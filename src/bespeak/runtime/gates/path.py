"""460, or 454 under AGIS rules: the path breaks the path grammar."""

from __future__ import annotations

from urllib.parse import unquote

from bespeak.contract.grammar.path_syntax import check_path
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.fault import Fault
from bespeak.runtime.call import Call


def path_gate(call: Call) -> Refused | None:
    """Refuse malformed paths and method names in them. Registered literal paths were checked at registration."""
    if call.path in call.routes.router.literals:
        return None
    fault = check_path(call.path, call.routes.catalog.names)
    if fault is None and ("{" in call.path or "%" in call.path):
        fault = _check_values(call.path)
    if fault is None:
        return None
    return Refused(
        status.GRAMMAR_VIOLATION if call.speaks_agis else status.ENDPOINT_VIOLATION,
        "endpoint-violation",
        f"The path is not allowed: {fault.message[:300]}.",
        {"path": call.path[:300], "segment": fault.at[:120]},
    )


def _check_values(path: str) -> Fault | None:
    """Find faults that only a request path can have: template parameters, or bytes that are not valid text."""
    for segment in path.split("/"):
        if "{" in segment:
            return Fault("a request path needs values in place of {parameters}", segment)
        try:
            unquote(segment, errors="strict")
        except UnicodeDecodeError:
            return Fault(f"{segment[:80]!r} does not decode to UTF-8 text", segment)
    return None
