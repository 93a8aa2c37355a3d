"""Policies of a server: which methods it admits, and its operational toggles (AGTP-API 8.7, 9)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from bespeak.contract.rules import LEGACY_SET
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.reading.settings import VERB, Setting, setting, table, tables
from bespeak.text.reading.table import Table

LEGACY_VERBS: Final = ("GET", "POST", "PUT", "DELETE", "PATCH")
FLOOR_METHODS: Final = (
    *("QUERY", "DISCOVER", "DESCRIBE", "SUMMARIZE", "PLAN", "PROPOSE", "EXECUTE", "DELEGATE", "ESCALATE", "CONFIRM"),
    *("SUSPEND", "NOTIFY"),
)  # the twelve methods that every server supports, independent of its policy (AGTP-API 3.1)
LIFECYCLE_METHODS: Final = ("ACTIVATE", "DEACTIVATE", "REINSTATE", "REVOKE", "DEPRECATE")  # of agents (core 7.4)
SERVER_ENDPOINTS: Final = frozenset(
    [(method, "/") for method in (*FLOOR_METHODS, *LIFECYCLE_METHODS, "INSPECT")]
    + [("DISCOVER", "/methods"), ("QUERY", "/proposals"), ("QUERY", "/proposals/{proposal_id}")]
    + [
        (method, path)
        for method in ("DISCOVER", "DESCRIBE")
        for path in ("/agents", "/agents/{name}", "/agents/{name}/status")
    ]
)  # built-in endpoints of every server. They are not part of the contract that its operator wrote.
_UNLESS_CHOSEN: Final = frozenset({("QUERY", "/messages", "floor"), ("RESUME", "/", "floor")})
"""Method, path and namespace of built-in endpoints whose method and path an operator may use or enable."""


def is_of_server(method: str, path: str, namespace: str | None) -> bool:
    """Return True for a built-in endpoint, which is not part of the contract that an operator wrote."""
    return (method, path) in SERVER_ENDPOINTS or (method, path, namespace) in _UNLESS_CHOSEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """A redirect of one method to another. Without `from_path` any path matches; without `to_path` the path is kept."""

    from_method: str = setting("", "The verb of the call.", required=True, parse=str.upper, format=VERB)
    to_method: str = setting("", "The verb to use instead.", required=True, parse=str.upper, format=VERB)
    from_path: str | None = setting(None, "The path of the call. Without it: any.")
    to_path: str | None = setting(None, "The path to use instead. Without it: the same.")

    def to_json(self) -> dict[str, str]:
        entry = {
            "from_method": self.from_method,
            "from_path": self.from_path,
            "to_method": self.to_method,
            "to_path": self.to_path,
        }
        return {name: value for name, value in entry.items() if value is not None}


def _read_names(block: Table, key: str) -> tuple[str, ...]:
    return tuple(name.strip().upper() for name in block.texts(key))


def _read_allow(block: Table, key: str) -> Literal["*"] | tuple[str, ...]:
    value = block.value(key)
    if isinstance(value, list):
        return _read_names(block, key)
    if value != "*":
        block.wrong(key, 'an array of methods or "*"', value)
    return "*"


def _read_legacy(block: Table, key: str) -> tuple[str, ...]:
    """Read a list, "*" or "NONE" (AGTP-API 9.2), or the older `legacy_verbs = "enabled"` (3.6)."""
    switch = block.value("legacy_verbs")
    if switch is not None and not block.has(key):
        if isinstance(switch, bool):
            return LEGACY_VERBS if switch else ()
        return LEGACY_VERBS if block.choice("legacy_verbs", ("enabled", "disabled")) == "enabled" else ()
    value = block.value(key)
    if value == "*":
        return LEGACY_VERBS
    if value is None or (isinstance(value, str) and value.upper() == "NONE"):
        return ()
    if not isinstance(value, list):
        block.wrong(key, 'an array of HTTP verbs, "*" or "NONE"', value)
        return ()
    verbs = _read_names(block, key)
    for verb in verbs:
        if verb not in LEGACY_VERBS:
            wanted = ", ".join(LEGACY_VERBS)
            message = f"each value of `{key}` must be one of {wanted} (AGTP-API 9.4); got {brief(verb)}"
            block.findings.error(
                LEGACY_SET, message, block.pointer(key), "List methods beyond the catalog in `custom`."
            )
    return verbs


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodPolicy:
    """Methods that a server admits: allowed, disallowed, legacy and custom ones, and redirects."""

    allow: Literal["*"] | tuple[str, ...] = setting(
        "*", 'Admitted methods; `"*"` for all.', kind="strings", format=VERB, read=_read_allow
    )
    disallow: tuple[str, ...] = setting((), "Refused methods. They win over `allow`.", format=VERB, read=_read_names)
    legacy: tuple[str, ...] = setting(
        (), 'Admitted HTTP verbs; `"*"` for all.', choices=LEGACY_VERBS, read=_read_legacy, known=("legacy_verbs",)
    )
    redirects: tuple[Redirect, ...] = tables(
        Redirect, also={"aliases": Setting(meaning="`OLD = NEW`: a redirect for any path.", kind="map")}
    )
    custom: tuple[str, ...] = setting((), "Methods that are not in the catalog (AGTP-API 3.3).", read=_read_names)

    def checked(self, block: Table) -> MethodPolicy:
        """Add the aliases: redirects that look at no path. One for an HTTP verb also allows that verb."""
        aliases = {source.upper(): target.upper() for source, target in block.text_map("aliases").items()}
        return replace(
            self,
            legacy=tuple(verb for verb in LEGACY_VERBS if verb in self.legacy or verb in aliases),
            redirects=(*self.redirects, *(Redirect(from_method=old, to_method=new) for old, new in aliases.items())),
        )

    def admits(self, method: str) -> bool:
        """Test whether the policy admits the method. Floor methods pass unless disallowed by name."""
        if method in self.disallow:
            return False
        return self.allow == "*" or method in self.allow or method in FLOOR_METHODS or method in self.custom

    def to_json(self) -> dict[str, Any]:
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

    wildcards_accepted: bool = setting(False, "Accept ad-hoc invocations of undeclared methods.")
    anonymous_discovery: bool = setting(True, "Answer discovery without an Agent-ID.", security=True)
    scope_required_for_invocation: bool | None = setting(
        None,
        "Refuse calls that declare no scope. Without it: true if an endpoint requires a scope or `[auth]` has modes.",
        kind="boolean",
    )
    synthesis_enabled: bool = setting(False, "Let agents propose endpoints; the server composes them of existing ones.")
    max_synthesis_depth: int = setting(
        10, "The most calls that one call of a composition makes, those of the compositions it calls included."
    )
    strict_output: bool = setting(False, "Refuse output fields that the output schema does not name (AGTP-API 13.3).")
    confirm_irreversible: bool = setting(
        False, "Make calls of irreversible endpoints wait until another party confirms them.", security=True
    )
    methods: MethodPolicy = table(MethodPolicy)

    def resolved(self, *, scoped: bool) -> Policies:
        """Return the policies in force; `scoped` is True if something requires a scope or callers authenticate."""
        # AGTP-API 8.7: the default is true, but a server without scope-gated endpoints may say false. There a scope
        # would be asked for that nothing declares, so that any text would do.
        if self.scope_required_for_invocation is not None:
            return self
        return replace(self, scope_required_for_invocation=scoped)

    def to_json(self) -> dict[str, Any]:
        return {
            "wildcards_accepted": self.wildcards_accepted,
            "anonymous_discovery": self.anonymous_discovery,
            "scope_required_for_invocation": bool(self.scope_required_for_invocation),
            "synthesis_enabled": self.synthesis_enabled,
            "max_synthesis_depth": self.max_synthesis_depth,
            "methods": self.methods.to_json(),
        }
