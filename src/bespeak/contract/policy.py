"""Policies of a server: which methods it admits, and its operational toggles (AGTP-API 8.7, 9)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

LEGACY_VERBS: Final = ("GET", "POST", "PUT", "DELETE", "PATCH")

FLOOR_METHODS: Final = (
    "QUERY",
    "DISCOVER",
    "DESCRIBE",
    "SUMMARIZE",
    "PLAN",
    "PROPOSE",
    "EXECUTE",
    "DELEGATE",
    "ESCALATE",
    "CONFIRM",
    "SUSPEND",
    "NOTIFY",
)
"""AGTP-API 3.1: the twelve every server supports, whatever its policy allows."""

LIFECYCLE_METHODS: Final = ("ACTIVATE", "DEACTIVATE", "REINSTATE", "REVOKE", "DEPRECATE")
"""Lifecycle methods of agents (core 7.4)."""

SERVER_ENDPOINTS: Final = frozenset(
    [(method, "/") for method in (*FLOOR_METHODS, *LIFECYCLE_METHODS, "INSPECT")]
    + [("DISCOVER", "/methods")]
    + [(method, path) for method in ("DISCOVER", "DESCRIBE") for path in ("/agents", "/agents/{name}")]
)
"""Built-in endpoints of every server. They are not part of the contract that its operator wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """A redirect of one method to another. Without `from_path` any path matches; without `to_path` the path is kept."""

    from_method: str
    to_method: str
    from_path: str | None = None
    to_path: str | None = None

    def to_json(self) -> dict[str, str]:
        """Write the entry of a manifest."""
        entry = {
            "from_method": self.from_method,
            "from_path": self.from_path,
            "to_method": self.to_method,
            "to_path": self.to_path,
        }
        return {name: value for name, value in entry.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodPolicy:
    """Methods that a server admits: allowed, disallowed, legacy and custom ones, and redirects."""

    allow: Literal["*"] | tuple[str, ...] = "*"
    """Admitted methods; `"*"` for all."""
    disallow: tuple[str, ...] = ()
    """Refused methods. They win over `allow`."""
    legacy: tuple[str, ...] = ()
    """Admitted HTTP verbs."""
    redirects: tuple[Redirect, ...] = ()
    custom: tuple[str, ...] = ()
    """Methods that are not in the catalog (AGTP-API 3.3). The draft has no field for them; this one is ours."""

    def admits(self, method: str) -> bool:
        """Test whether the policy admits the method. Floor methods pass unless disallowed by name."""
        if method in self.disallow:
            return False
        return self.allow == "*" or method in self.allow or method in FLOOR_METHODS or method in self.custom

    def to_json(self) -> dict[str, Any]:
        """Write the `policies.methods` block of a manifest."""
        return {
            "allow": "*" if self.allow == "*" else list(self.allow),
            "disallow": list(self.disallow),
            "legacy": "*" if self.legacy == LEGACY_VERBS else list(self.legacy) or "NONE",
            "redirects": [redirect.to_json() for redirect in self.redirects],
            "custom": list(self.custom),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """Policies of a server, with the defaults of AGTP-API 8.7."""

    wildcards_accepted: bool = False
    """Accept ad-hoc invocations of undeclared methods."""
    anonymous_discovery: bool = True
    """Answer discovery without an Agent-ID."""
    scope_required_for_invocation: bool = True
    """Refuse calls that declare no scope."""
    synthesis_enabled: bool = False
    """Reserved for negotiation; no effect in this version."""
    max_synthesis_depth: int = 10
    """Reserved for negotiation; no effect in this version."""
    strict_output: bool = False
    """Also refuse output fields that the output schema does not name (AGTP-API 13.3)."""
    confirm_irreversible: bool = False
    """Make calls of irreversible endpoints wait until another party confirms them."""
    methods: MethodPolicy = field(default_factory=MethodPolicy)

    def to_json(self) -> dict[str, Any]:
        """Write the `policies` block of a manifest."""
        return {
            "wildcards_accepted": self.wildcards_accepted,
            "anonymous_discovery": self.anonymous_discovery,
            "scope_required_for_invocation": self.scope_required_for_invocation,
            "synthesis_enabled": self.synthesis_enabled,
            "max_synthesis_depth": self.max_synthesis_depth,
            "methods": self.methods.to_json(),
        }
