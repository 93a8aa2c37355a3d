"""The reply of a service to a call, in terms of AGTP, for faces that call endpoints by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused


@dataclass(frozen=True, slots=True)
class Outcome:
    """The reply of a service to a call: an output, or a refusal."""

    status: int
    output: Any = None
    """Output of a call that was carried out: JSON data, or text if the service does not send JSON."""
    error: Mapping[str, Any] = field(default_factory=dict)
    """Members of a refusal: code, message, details and others."""
    retry_after: str | None = None
    warning: str | None = None
    """Warning that the endpoint or its verb is deprecated."""
    mapping: str | None = None
    """Header Semantic-Mapping of a call that was understood through alignments; None for any other."""

    @property
    def ok(self) -> bool:
        """True if the call was carried out."""
        return status.is_success(self.status)

    @property
    def confirmation_id(self) -> str | None:
        """Case of a call that another party has to confirm; None for any other outcome."""
        found = self.error.get("confirmation_id") if self.error.get("code") == "confirmation-required" else None
        return found if isinstance(found, str) else None


def refused(refusal: Refused) -> Outcome:
    """Turn a refusal of our own into an outcome."""
    return Outcome(refusal.status, error={"code": refusal.code, "message": refusal.message, **refusal.details})
