"""The refusal of an input that violates its schema: 422 with all violations (AGTP-API 13.2)."""

from __future__ import annotations

import msgspec

from bespeak.contract.schema.violation import Violation
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused


def refuse_input(method: str, path: str, violations: list[Violation]) -> Refused:
    """Build the refusal: the message names the first violation, the list contains all."""
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
