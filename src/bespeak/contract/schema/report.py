"""The refusal of an input that breaks its schema: 422 with everything that is wrong (AGTP-API 13.2)."""

from __future__ import annotations

import msgspec

from bespeak.contract.schema.violation import Violation
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused


def refuse_input(method: str, path: str, violations: list[Violation]) -> Refused:
    """What an agent gets; the message tells the first violation, the list all of them."""
    more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
    return Refused(
        status.UNPROCESSABLE,
        "input-validation-failed",
        f"The input of {method} {path[:200]} is not valid: {violations[0].message}{more}.",
        {
            "method": method,
            "path": path[:300],
            "violations": [msgspec.to_builtins(violation) for violation in violations],
        },
    )
