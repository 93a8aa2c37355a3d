"""Changes of a service beyond its endpoints: policies, catalog, vocabulary, data manifest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bespeak.checks.evolution.change import WORDING_CHANGED, ChangeList, ContractChange, Level
from bespeak.checks.evolution.change_rules import ChangeRule, contract_rule, wire_rule
from bespeak.checks.evolution.contract import Contract
from bespeak.contract.catalog.version import parse_version
from bespeak.contract.data_manifest import DataClass, DataManifest
from bespeak.contract.policy import MethodPolicy, Policies, Redirect
from bespeak.contract.vocabulary import Vocabulary
from bespeak.text.diagnostics.brief import brief
from bespeak.text.source.pointer import child

POLICY_TIGHTENED: Final = wire_rule("C170", "policy-tightened", "narrowed", "A policy of the server is stricter.")
POLICY_LOOSENED: Final = wire_rule("C171", "policy-loosened", "widened", "A policy of the server is more permissive.")
METHOD_REFUSED: Final = wire_rule("C172", "method-refused", "narrowed", "The server refuses a method that it allowed.")
METHOD_ADMITTED: Final = wire_rule("C173", "method-admitted", "widened", "The server allows a method that it refused.")
REDIRECT_ADDED: Final = wire_rule("C178", "redirect-added", "added", "Requests are redirected to another endpoint.")
REDIRECT_REMOVED: Final = wire_rule("C179", "redirect-removed", "removed", "Requests are no longer redirected.")
REDIRECT_CHANGED: Final = wire_rule("C180", "redirect-changed", "changed", "Requests are redirected to another target.")
CATALOG_CHANGED: Final = contract_rule(
    "C181", "catalog-changed", "changed", "Verbs are checked against another version of the catalog."
)
NEGOTIATION_ENDED: Final = contract_rule(
    "C185", "negotiation-ended", "narrowed", "The service no longer negotiates endpoints."
)
NEGOTIATION_OFFERED: Final = contract_rule(
    "C186", "negotiation-offered", "widened", "The service negotiates endpoints."
)
VERB_WITHDRAWN: Final = contract_rule("C187", "verb-withdrawn", "removed", "The vocabulary lost a verb.")
VERB_DECLARED: Final = contract_rule("C188", "verb-declared", "added", "The vocabulary has a new verb.")
VOCABULARY_MOVED: Final = contract_rule(
    "C189", "vocabulary-moved", "changed", "The vocabulary has another domain or namespace."
)
DATA_CLASS_REMOVED: Final = contract_rule(
    "C190", "data-class-removed", "removed", "A class of data can no longer be negotiated for."
)
DATA_CLASS_ADDED: Final = contract_rule(
    "C191", "data-class-added", "added", "A new class of data can be negotiated for."
)
DATA_CLASS_RESTRICTED: Final = contract_rule(
    "C192", "data-class-restricted", "narrowed", "A class of data is harder to get."
)
DATA_CLASS_EASED: Final = contract_rule("C193", "data-class-eased", "widened", "A class of data is easier to get.")
SENSITIVITY_CHANGED: Final = contract_rule(
    "C194", "sensitivity-changed", "changed", "A class of data has another sensitivity."
)

_SWITCHES: Final = (
    ("wildcards_accepted", True, "Ad-hoc invocations are refused."),
    ("anonymous_discovery", True, "Callers must identify themselves to get the manifest."),
    ("scope_required_for_invocation", False, "Every call must declare a scope."),
    ("synthesis_enabled", True, "Proposals are no longer answered by composing endpoints."),
)
"""Policy switches, each with its permissive value and what leaving it means for a client."""


def diff_services(old: Contract, new: Contract) -> list[ContractChange]:
    """Yield every change that belongs to no single endpoint. Members that only one side has are not compared."""
    changes = ChangeList()
    if old.policies is not None and new.policies is not None:
        _switches(old.policies, new.policies, changes)
        _methods(old, new, changes)
        _redirects(old, new.policies.methods.redirects, old.policies.methods.redirects, changes)
    _catalog(old.catalog_version, new.catalog_version, changes)
    if old.vocabulary is not None and new.vocabulary is not None:
        _vocabulary(old.vocabulary, new.vocabulary, changes)
        # Without a vocabulary there is no AGIS document, and nothing is known of its data.
        _data(old.data_manifest or DataManifest(), new.data_manifest or DataManifest(), changes)
    return changes.found


def _switches(old: Policies, new: Policies, changes: ChangeList) -> None:
    for name, generous, meaning in _SWITCHES:
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            level: Level = "safe" if after == generous else "breaking"
            rule, advice = (POLICY_LOOSENED, "") if after == generous else (POLICY_TIGHTENED, meaning)
            _policy(changes, rule, level, name, values=(before, after), advice=advice)
    before, after = old.max_synthesis_depth, new.max_synthesis_depth
    if before != after:
        depth: Level = "risky" if after < before else "safe"
        advice = "Compositions that were deep enough for some proposals are cut." if after < before else ""
        rule = POLICY_TIGHTENED if after < before else POLICY_LOOSENED
        _policy(changes, rule, depth, "max_synthesis_depth", values=(before, after), advice=advice)


def _policy(
    changes: ChangeList, rule: ChangeRule, level: Level, name: str, *, values: tuple[object, object], advice: str
) -> None:
    old, new = values
    message = f"{name}: {str(old).lower()} -> {str(new).lower()}"
    changes.add(rule, level, "policy", f"/policies/{name}", message, advice=advice, old=old, new=new)


def _methods(old: Contract, new: Contract, changes: ChangeList) -> None:
    assert old.policies is not None
    assert new.policies is not None
    before, after = old.policies.methods, new.policies.methods
    known = {name for policy in (before, after) for name in _named(policy)}
    known |= {endpoint.method for contract in (old, new) for endpoint in contract.endpoints}
    for method in sorted(known):
        _admission(method, before.admits(method), after.admits(method), "allow", changes)
        _admission(method, method in before.legacy, method in after.legacy, "legacy", changes)
        _admission(method, method in before.custom, method in after.custom, "custom", changes)
    if (before.allow == "*") != (after.allow == "*"):
        # The methods that nobody names change as well.
        _admission("every other method", before.allow == "*", after.allow == "*", "allow", changes)


def _named(policy: MethodPolicy) -> Iterable[str]:
    allowed = () if policy.allow == "*" else policy.allow
    return (*allowed, *policy.disallow, *policy.legacy, *policy.custom)


def _admission(method: str, before: bool, after: bool, where: str, changes: ChangeList) -> None:
    if before == after:
        return
    at = f"/policies/methods/{where}"
    if after:
        changes.add(METHOD_ADMITTED, "safe", "policy", at, f"{method} is admitted ({where})", new=method)
    else:
        advice = "Requests with it get 405 or 459; move clients to another method first."
        changes.add(
            METHOD_REFUSED, "breaking", "policy", at, f"{method} is refused ({where})", advice=advice, old=method
        )


def _redirects(
    old: Contract, after_entries: Iterable[Redirect], before_entries: Iterable[Redirect], changes: ChangeList
) -> None:
    before = {(entry.from_method, entry.from_path): entry for entry in before_entries}
    after = {(entry.from_method, entry.from_path): entry for entry in after_entries}
    at = "/policies/methods/redirects"
    for key in sorted({*before, *after}, key=str):
        one, other = before.get(key), after.get(key)
        if one == other:
            continue
        values = (one.to_json() if one else None, other.to_json() if other else None)
        if one is None:
            assert other is not None
            # A redirect goes before routing, so that an endpoint it covers is no longer reached.
            covers = any(endpoint.method == key[0] and key[1] in (None, endpoint.path) for endpoint in old.endpoints)
            level: Level = "breaking" if covers else "safe"
            advice = "Calls of the endpoint that stood there go elsewhere; take the redirect back." if covers else ""
            message = f"redirect {_arrow(other)} is new"
            changes.add(REDIRECT_ADDED, level, "policy", at, message, advice=advice, old=values[0], new=values[1])
        elif other is None:
            message, advice = (
                f"redirect {_arrow(one)} is gone",
                "Clients that still call the old name are refused; keep it.",
            )
            changes.add(
                REDIRECT_REMOVED, "breaking", "policy", at, message, advice=advice, old=values[0], new=values[1]
            )
        else:
            message, advice = (
                f"redirect {_arrow(one)} now goes to {_target(other)}",
                "See that both accept the same input.",
            )
            changes.add(REDIRECT_CHANGED, "risky", "policy", at, message, advice=advice, old=values[0], new=values[1])


def _arrow(redirect: Redirect) -> str:
    return f"{redirect.from_method} {redirect.from_path or '*'} -> {_target(redirect)}"


def _target(redirect: Redirect) -> str:
    return f"{redirect.to_method} {redirect.to_path or '*'}"


def _catalog(old: str | None, new: str | None, changes: ChangeList) -> None:
    before, after = parse_version(old or ""), parse_version(new or "")
    if before is None or after is None or before == after:
        return
    level: Level = "safe" if before.major == after.major else "risky"
    advice = f"`bespeak catalog diff {old} {new}` lists the added and removed verbs."
    message = f"catalog {old} -> {new}"
    changes.add(CATALOG_CHANGED, level, "policy", "/catalog_version", message, advice=advice, old=old, new=new)


def _vocabulary(old: Vocabulary, new: Vocabulary, changes: ChangeList) -> None:
    at = "/vocabulary"
    if old.negotiable != new.negotiable:
        level: Level = "breaking" if old.negotiable else "safe"
        rule, word = (NEGOTIATION_ENDED, "no longer") if old.negotiable else (NEGOTIATION_OFFERED, "now")
        message = f"endpoints can {word} be negotiated"
        advice = "Agents that propose endpoints are refused; offer the endpoints they used." if old.negotiable else ""
        _noted(
            changes, rule, level, f"{at}/negotiable", message, values=(old.negotiable, new.negotiable), advice=advice
        )
    # A deployment declares verbs by its endpoints, not by a list: then there is nothing to compare.
    listed = bool(old.declared_verbs and new.declared_verbs)
    for verb in sorted(set(old.declared_verbs) - set(new.declared_verbs)) if listed else ():
        message, advice = f"the verb {verb} is withdrawn", "Agents that look for it go elsewhere."
        _noted(changes, VERB_WITHDRAWN, "risky", f"{at}/declared_verbs", message, values=(verb, None), advice=advice)
    for verb in sorted(set(new.declared_verbs) - set(old.declared_verbs)) if listed else ():
        _noted(
            changes, VERB_DECLARED, "safe", f"{at}/declared_verbs", f"the verb {verb} is declared", values=(None, verb)
        )
    for field in ("domain", "namespace"):
        before, after = getattr(old, field), getattr(new, field)
        if before != after:
            message, advice = f"{field}: {brief(before)} -> {brief(after)}", "Agents know the verbs by it."
            _noted(changes, VOCABULARY_MOVED, "risky", f"{at}/{field}", message, values=(before, after), advice=advice)


def _data(old: DataManifest, new: DataManifest, changes: ChangeList) -> None:
    before = {entry.name: entry for entry in old.available_data}
    after = {entry.name: entry for entry in new.available_data}
    at = "/data_manifest/available_data"
    for name in sorted({*before, *after}):
        if name not in after:
            advice = "Agents can no longer negotiate for it; keep the class."
            _noted(
                changes,
                DATA_CLASS_REMOVED,
                "breaking",
                at,
                f"the data class {name} is gone",
                values=(name, None),
                advice=advice,
            )
        elif name not in before:
            _noted(changes, DATA_CLASS_ADDED, "safe", at, f"the data class {name} is new", values=(None, name))
        else:
            _data_class(before[name], after[name], child(at, name), changes)
    if bool(old.pre_auth_discovery) != bool(new.pre_auth_discovery):
        values = (bool(old.pre_auth_discovery), bool(new.pre_auth_discovery))
        where = "/data_manifest/pre_auth_discovery"
        if values[1]:
            _noted(
                changes,
                DATA_CLASS_EASED,
                "safe",
                where,
                "the data manifest is shown before authorization",
                values=values,
            )
        else:
            advice = "Agents must authenticate before they learn what there is."
            message = "the data manifest is hidden before authorization"
            _noted(changes, DATA_CLASS_RESTRICTED, "breaking", where, message, values=values, advice=advice)


def _data_class(old: DataClass, new: DataClass, at: str, changes: ChangeList) -> None:
    for form in sorted(set(old.formats) - set(new.formats)):
        message = f"the data class {old.name} no longer comes as {form}"
        _noted(
            changes,
            DATA_CLASS_RESTRICTED,
            "breaking",
            f"{at}/formats",
            message,
            values=(form, None),
            advice="Keep the format.",
        )
    for form in sorted(set(new.formats) - set(old.formats)):
        _noted(
            changes,
            DATA_CLASS_EASED,
            "safe",
            f"{at}/formats",
            f"the data class {old.name} comes as {form}",
            values=(None, form),
        )
    before, after = bool(old.requires_authorization), bool(new.requires_authorization)
    if before != after:
        level: Level = "breaking" if after else "safe"
        rule, word = (DATA_CLASS_RESTRICTED, "now") if after else (DATA_CLASS_EASED, "no longer")
        message = f"the data class {old.name} {word} requires authorization"
        advice = "Agents without it lose access." if after else ""
        _noted(changes, rule, level, f"{at}/requires_authorization", message, values=(before, after), advice=advice)
    if old.sensitivity != new.sensitivity:
        message = f"sensitivity of {old.name}: {brief(old.sensitivity)} -> {brief(new.sensitivity)}"
        advice = "Agents treat data by its sensitivity."
        _noted(
            changes,
            SENSITIVITY_CHANGED,
            "risky",
            f"{at}/sensitivity",
            message,
            values=(old.sensitivity, new.sensitivity),
            advice=advice,
        )
    if old.description != new.description:
        message = f"description of {old.name}: {brief(old.description)} -> {brief(new.description)}"
        _noted(
            changes, WORDING_CHANGED, "safe", f"{at}/description", message, values=(old.description, new.description)
        )


def _noted(
    changes: ChangeList,
    rule: ChangeRule,
    level: Level,
    at: str,
    message: str,
    *,
    values: tuple[object, object],
    advice: str = "",
) -> None:
    old, new = values
    changes.add(rule, level, "policy", at, message, advice=advice, old=old, new=new)
