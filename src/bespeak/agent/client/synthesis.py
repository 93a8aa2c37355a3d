"""A synthesis: the endpoint that a server made for an agent (AGTP-API 10.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bespeak.contract.endpoint import Endpoint
from bespeak.documents.projections.agtp_manifest import project_endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthesis:
    """An approved endpoint whose contract was compared with the one that was asked for."""

    endpoint: Endpoint
    """Contract of the endpoint."""
    synthesis_id: str | None
    """Id of the synthesis; None if the service has the endpoint anyway."""
    proposal_id: str | None = None
    negotiation_id: str | None = None
    expires_at: str | None = None
    """Time at which the endpoint ends, if the server gives one; without it, it ends with the session."""
    persistent: bool = False
    granted_duration: str | None = None
    is_counter_proposal: bool = False
    """True if the server made another proposal, which was followed. Look at what it does before you call it."""
    explanation: tuple[str, ...] = ()
    """How the server composes the endpoint, step by step, if it says so."""
    notes: tuple[str, ...] = ()
    """What is other than asked and takes nothing away, and what the server did not state."""
    invoke: Callable[[Mapping[str, Any]], Any]
    """Calls the endpoint with an input."""

    def call(self, **input: Any) -> Any:  # noqa: A002 - the draft's word
        """Call the endpoint and return its output, to be awaited unless the client is a blocking one.

        Raises a ServiceError if the service refuses.
        """
        return self.invoke(input)

    def to_json(self) -> dict[str, Any]:
        """Return the synthesis as data; the endpoint without its handler's details."""
        return {
            "synthesis_id": self.synthesis_id,
            "proposal_id": self.proposal_id,
            "negotiation_id": self.negotiation_id,
            "expires_at": self.expires_at,
            "persistent": self.persistent,
            "granted_duration": self.granted_duration,
            "is_counter_proposal": self.is_counter_proposal,
            "explanation": list(self.explanation),
            "notes": list(self.notes),
            "endpoint": project_endpoint(self.endpoint),
        }
