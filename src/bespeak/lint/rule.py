"""A rule: what it is called, how binding it is, which section of a draft it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from bespeak.contract.endpoint import Endpoint
from bespeak.diagnostics.diagnostic import Diagnostic, Severity

Normative = Literal["MUST", "SHOULD"]

SEVERITY: Final[dict[Normative, Severity]] = {"MUST": "error", "SHOULD": "warning"}
"""What a draft demands is an error, what it recommends a warning."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. Its id never changes its meaning."""

    id: str
    name: str
    """What the finding is, in a few words joined by hyphens."""
    normative: Normative
    source: str
    """The draft's section, `AGTP-API 5.1`."""
    summary: str

    @property
    def severity(self) -> Severity:
        """How grave a finding of this rule is."""
        return SEVERITY[self.normative]

    def at(self, endpoint: Endpoint, pointer: str, message: str, advice: str = "") -> Diagnostic:
        """A finding in an endpoint. The pointer is relative to the endpoint."""
        return Diagnostic(
            self.id, self.severity, f"{endpoint}: {message}", endpoint.location, f"/endpoint{pointer}", advice
        )

    def inside(self, pointer: str, message: str, advice: str = "") -> Diagnostic:
        """A finding in a document that is no endpoint, at a pointer from its root."""
        return Diagnostic(self.id, self.severity, message, None, pointer, advice)
