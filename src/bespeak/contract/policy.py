"""What a server accepts in the first place: the policies block and its method policy (AGTP-API 8.7, 9)."""

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
"""Core 7.4: what becomes of agents."""

SERVER_ENDPOINTS: Final = frozenset(
    [(method, "/") for method in (*FLOOR_METHODS, *LIFECYCLE_METHODS, "INSPECT")]
    + [("DISCOVER", "/methods")]
    + [(method, path) for method in ("DISCOVER", "DESCRIBE") for path in ("/agents", "/agents/{name}")]
)
"""The endpoints that a server has without being told; they are no part of the contract its operator wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """One redirect entry: a missing `from_path` matches any path, a missing `to_path` keeps it."""

    from_method: str
    to_method: str
    from_path: str | None = None
    to_path: str | None = None

    def to_json(self) -> dict[str, str]:
        """The entry as it stands in a manifest."""
        entry = {
            "from_method": self.from_method,
            "from_path": self.from_path,
            "to_method": self.to_method,
            "to_path": self.to_path,
        }
        return {name: value for name, value in entry.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodPolicy:
    """Allowed, disallowed, legacy and custom methods, and redirects."""

    allow: Literal["*"] | tuple[str, ...] = "*"
    disallow: tuple[str, ...] = ()
    legacy: tuple[str, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    custom: tuple[str, ...] = ()
    """Methods beyond the catalog (AGTP-API 3.3). The draft names no field for them; this is ours."""

    def admits(self, method: str) -> bool:
        """Whether the policy lets the method through at all. Floor methods pass unless disallowed by name."""
        if method in self.disallow:
            return False
        return self.allow == "*" or method in self.allow or method in FLOOR_METHODS or method in self.custom

    def to_json(self) -> dict[str, Any]:
        """The `policies.methods` block."""
        return {
            "allow": "*" if self.allow == "*" else list(self.allow),
            "disallow": list(self.disallow),
            "legacy": "*" if self.legacy == LEGACY_VERBS else list(self.legacy) or "NONE",
            "redirects": [redirect.to_json() for redirect in self.redirects],
            "custom": list(self.custom),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """The operational toggles of AGTP-API 8.7 with the draft's defaults."""

    wildcards_accepted: bool = False
    anonymous_discovery: bool = True
    scope_required_for_invocation: bool = True
    synthesis_enabled: bool = False
    max_synthesis_depth: int = 10
    strict_output: bool = False
    """AGTP-API 13.3: also refuse output fields that the output schema does not name."""
    confirm_irreversible: bool = False
    """Calls of irreversible endpoints wait until somebody other than the caller has confirmed them."""
    methods: MethodPolicy = field(default_factory=MethodPolicy)

    def to_json(self) -> dict[str, Any]:
        """The `policies` block of a manifest."""
        return {
            "wildcards_accepted": self.wildcards_accepted,
            "anonymous_discovery": self.anonymous_discovery,
            "scope_required_for_invocation": self.scope_required_for_invocation,
            "synthesis_enabled": self.synthesis_enabled,
            "max_synthesis_depth": self.max_synthesis_depth,
            "methods": self.methods.to_json(),
        }
