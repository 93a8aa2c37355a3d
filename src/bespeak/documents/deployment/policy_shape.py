"""The policies block as documents write it (AGTP-API 8.7, 9.2); manifests and configurations share it."""

from __future__ import annotations

from typing import Final, Literal

from bespeak.contract.policy import LEGACY_VERBS, MethodPolicy, Policies, Redirect
from bespeak.text.diagnostics.brief import brief
from bespeak.text.reading.table import Table

_DEFAULTS: Final = Policies()


def read_policies(block: Table) -> Policies:
    """The toggles and the method policy; what is not given keeps the draft's default."""
    methods = block.table("methods")
    return Policies(
        wildcards_accepted=_toggle(block, "wildcards_accepted", _DEFAULTS.wildcards_accepted),
        anonymous_discovery=_toggle(block, "anonymous_discovery", _DEFAULTS.anonymous_discovery),
        scope_required_for_invocation=_toggle(
            block, "scope_required_for_invocation", _DEFAULTS.scope_required_for_invocation
        ),
        synthesis_enabled=_toggle(block, "synthesis_enabled", _DEFAULTS.synthesis_enabled),
        max_synthesis_depth=block.count("max_synthesis_depth") or _DEFAULTS.max_synthesis_depth,
        strict_output=_toggle(block, "strict_output", _DEFAULTS.strict_output),
        confirm_irreversible=_toggle(block, "confirm_irreversible", _DEFAULTS.confirm_irreversible),
        methods=_read_methods(methods) if methods else _DEFAULTS.methods,
    )


def _toggle(block: Table, key: str, default: bool) -> bool:
    value = block.boolean(key)
    return default if value is None else value


def _read_methods(block: Table) -> MethodPolicy:
    aliases = {source.upper(): target.upper() for source, target in block.text_map("aliases").items()}
    legacy = _read_legacy(block)
    policy = MethodPolicy(
        allow=_read_allow(block),
        disallow=_names(block, "disallow"),
        legacy=tuple(verb for verb in LEGACY_VERBS if verb in legacy or verb in aliases),
        redirects=(
            *(_read_redirect(entry) for entry in block.tables("redirects")),
            # An alias is a redirect that looks at no path. One for an HTTP verb also lets that verb in.
            *(Redirect(from_method=source, to_method=target) for source, target in aliases.items()),
        ),
        custom=_names(block, "custom"),
    )
    block.finish()
    return policy


def _names(block: Table, key: str) -> tuple[str, ...]:
    return tuple(name.strip().upper() for name in block.texts(key))


def _read_allow(block: Table) -> Literal["*"] | tuple[str, ...]:
    value = block.value("allow")
    if isinstance(value, list):
        return _names(block, "allow")
    if value not in (None, "*"):
        block.wrong("allow", 'an array of methods or "*"', value)
    return "*"


def _read_legacy(block: Table) -> tuple[str, ...]:
    """`legacy` as a list, "*" or "NONE" (AGTP-API 9.2), or the older `legacy_verbs = "enabled"` (3.6)."""
    switch = block.value("legacy_verbs")
    if switch is not None and not block.has("legacy"):
        if isinstance(switch, bool):
            return LEGACY_VERBS if switch else ()
        return LEGACY_VERBS if block.choice("legacy_verbs", ("enabled", "disabled")) == "enabled" else ()
    value = block.value("legacy")
    if value == "*":
        return LEGACY_VERBS
    if value is None or (isinstance(value, str) and value.upper() == "NONE"):
        return ()
    if not isinstance(value, list):
        block.wrong("legacy", 'an array of HTTP verbs, "*" or "NONE"', value)
        return ()
    verbs = _names(block, "legacy")
    for verb in verbs:
        if verb not in LEGACY_VERBS:
            block.findings.error(
                "Y804",
                f"`legacy` lists {brief(verb)}, which is none of {', '.join(LEGACY_VERBS)} (AGTP-API 9.4)",
                block.pointer("legacy"),
                "A method beyond the catalog stands in `custom`.",
            )
    return verbs


def _read_redirect(entry: Table) -> Redirect:
    redirect = Redirect(
        from_method=entry.need_text("from_method").upper(),
        to_method=entry.need_text("to_method").upper(),
        from_path=entry.text("from_path"),
        to_path=entry.text("to_path"),
    )
    entry.finish()
    return redirect
