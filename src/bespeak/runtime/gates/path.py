"""460, or 454 by AGIS: the path breaks the path grammar."""

from __future__ import annotations

from bespeak import status
from bespeak.exchange.refusal import Refused
from bespeak.grammar.path_syntax import check_path
from bespeak.runtime.call import Call


def path_gate(call: Call) -> Refused | None:
    """Refuse malformed paths and method names in them. A registered literal path was checked when it came in."""
    if call.path in call.registry.router.literals:
        return None
    fault = check_path(call.path, call.registry.catalog.names)
    if fault is None:
        if "{" not in call.path:
            return None
        segment = next(part for part in call.path.split("/") if "{" in part)
        message = "a request path has values where the template has {parameters}"
    else:
        segment, message = fault.segment, fault.message
    return Refused(
        status.GRAMMAR_VIOLATION if call.speaks_agis else status.ENDPOINT_VIOLATION,
        "endpoint-violation",
        f"The path is not allowed: {message[:300]}.",
        {"path": call.path[:300], "segment": segment[:120]},
    )
