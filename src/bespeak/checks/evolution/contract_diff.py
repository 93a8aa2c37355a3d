"""Changes between two contracts, the parts of services that clients see, for a client of the old one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from bespeak.checks.evolution.change import (
    WORDING_CHANGED,
    ChangeList,
    ContractChange,
    Level,
    Told,
    contract,
    wire,
)
from bespeak.checks.evolution.endpoint_diff import diff_endpoints, path_shape
from bespeak.checks.lint.subject import describe
from bespeak.contract.catalog.catalog import parse_version
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import MethodPolicy, Policies, Redirect, is_of_server
from bespeak.contract.service import DataClass, DataManifest, Service, Vocabulary
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.source.pointer import child


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """One side of a comparison. A member that is None is unknown and is not compared."""

    endpoints: tuple[Endpoint, ...] = ()
    policies: Policies | None = None
    catalog_version: str | None = None
    vocabulary: Vocabulary | None = None
    data_manifest: DataManifest | None = None
    version: str | None = None  # Operator's own version of the contract


def service_contract(service: Service, policies: Policies | None = None) -> Contract:
    """Return the contract of a service; policies are None if its document cannot state them."""
    vocabulary = service.vocabulary
    return Contract(
        endpoints=service.endpoints,
        policies=policies,
        catalog_version=service.catalog if policies is not None else None,
        vocabulary=vocabulary,
        data_manifest=service.data_manifest,
        version=service.document_version or (vocabulary.version if vocabulary else None),
    )


def manifest_contract(manifest: ManifestDocument) -> Contract:
    """Return the contract of a manifest. Built-in methods are marked, because other documents do not list them."""
    methods = replace(manifest.policies.methods, custom=manifest.custom_methods or manifest.policies.methods.custom)
    return Contract(
        endpoints=tuple(
            replace(endpoint, builtin=True) if is_of_server(*endpoint.key, endpoint.namespace) else endpoint
            for endpoint in manifest.endpoints
        ),
        policies=replace(manifest.policies, methods=methods),
        catalog_version=manifest.catalog_version or None,
        version=manifest.document_version or None,
    )


POLICY_TIGHTENED: Final = wire("C170", "policy-tightened", "narrowed", "A policy of the server is stricter.")
POLICY_LOOSENED: Final = wire("C171", "policy-loosened", "widened", "A policy of the server is more permissive.")
METHOD_REFUSED: Final = wire("C172", "method-refused", "narrowed", "The server refuses a method that it allowed.")
METHOD_ADMITTED: Final = wire("C173", "method-admitted", "widened", "The server allows a method that it refused.")
REDIRECT_ADDED: Final = wire("C178", "redirect-added", "added", "Requests are redirected to another endpoint.")
REDIRECT_REMOVED: Final = wire("C179", "redirect-removed", "removed", "Requests are no longer redirected.")
REDIRECT_CHANGED: Final = wire("C180", "redirect-changed", "changed", "Requests are redirected to another target.")
CATALOG_CHANGED: Final = contract(
    "C181", "catalog-changed", "changed", "Verbs are checked against another version of the catalog."
)
NEGOTIATION_ENDED: Final = contract(
    "C185", "negotiation-ended", "narrowed", "The service no longer negotiates endpoints."
)
NEGOTIATION_OFFERED: Final = contract("C186", "negotiation-offered", "widened", "The service negotiates endpoints.")
VERB_WITHDRAWN: Final = contract("C187", "verb-withdrawn", "removed", "The vocabulary lost a verb.")
VERB_DECLARED: Final = contract("C188", "verb-declared", "added", "The vocabulary has a new verb.")
VOCABULARY_MOVED: Final = contract(
    "C189", "vocabulary-moved", "changed", "The vocabulary has another domain or namespace."
)
CLASS_REMOVED: Final = contract(
    "C190", "data-class-removed", "removed", "A class of data can no longer be negotiated for."
)
CLASS_ADDED: Final = contract("C191", "data-class-added", "added", "A new class of data can be negotiated for.")
CLASS_RESTRICTED: Final = contract("C192", "data-class-restricted", "narrowed", "A class of data is harder to get.")
CLASS_EASED: Final = contract("C193", "data-class-eased", "widened", "A class of data is easier to get.")
SENSITIVITY_CHANGED: Final = contract(
    "C194", "sensitivity-changed", "changed", "A class of data has another sensitivity."
)

_SWITCHES: Final = (  # Policy switches, each with its permissive value and what leaving it means for a client.
    ("wildcards_accepted", True, "Ad-hoc invocations are refused."),
    ("anonymous_discovery", True, "Callers must identify themselves to get the manifest."),
    ("scope_required_for_invocation", False, "Every call must declare a scope."),
    ("synthesis_enabled", True, "Proposals are no longer answered by composing endpoints."),
)


def diff_services(old: Contract, new: Contract) -> list[ContractChange]:
    """Return every change that belongs to no single endpoint. Members that only one side has are not compared."""
    changes = ChangeList(direction="policy")
    if old.policies is not None and new.policies is not None:
        _switches(old.policies, new.policies, changes)
        endpoints = (*old.endpoints, *new.endpoints)
        _methods(old.policies.methods, new.policies.methods, {endpoint.method for endpoint in endpoints}, changes)
        _redirects(old.policies.methods.redirects, new.policies.methods.redirects, old.endpoints, changes)
    _catalog(old.catalog_version, new.catalog_version, changes)
    if old.vocabulary is not None and new.vocabulary is not None:
        _vocabulary(old.vocabulary, new.vocabulary, changes)
        # Without a vocabulary there is no AGIS document, and nothing is known of its data.
        _data(old.data_manifest or DataManifest(), new.data_manifest or DataManifest(), changes)
    return changes.found


def _switches(old: Policies, new: Policies, changes: ChangeList) -> None:
    for name, generous, meaning in _SWITCHES:
        before, after = getattr(old, name), getattr(new, name)
        message = f"{name}: {str(before).lower()} -> {str(after).lower()}"
        looser: Told = (POLICY_LOOSENED, "safe", message, "")
        stricter: Told = (POLICY_TIGHTENED, "breaking", message, meaning)
        changes.flip(f"/policies/{name}", before, after, *((looser, stricter) if generous else (stricter, looser)))
    before, after = old.max_synthesis_depth, new.max_synthesis_depth
    at, message = "/policies/max_synthesis_depth", f"max_synthesis_depth: {before} -> {after}"
    if after < before:
        advice = "Compositions that were deep enough for some proposals are cut."
        changes.add(POLICY_TIGHTENED, "risky", at, message, advice, old=before, new=after)
    elif after > before:
        changes.add(POLICY_LOOSENED, "safe", at, message, old=before, new=after)


def _methods(old: MethodPolicy, new: MethodPolicy, used: set[str], changes: ChangeList) -> None:
    """Compare which methods are admitted: those that a policy names, and `used`, those of the endpoints."""
    for method in sorted({*_named(old), *_named(new), *used}):
        _admission(method, old.admits(method), new.admits(method), "allow", changes)
        _admission(method, method in old.legacy, method in new.legacy, "legacy", changes)
        _admission(method, method in old.custom, method in new.custom, "custom", changes)
    # The methods that nobody names change as well.
    _admission("every other method", old.allow == "*", new.allow == "*", "allow", changes)


def _named(policy: MethodPolicy) -> Iterable[str]:
    allowed = () if policy.allow == "*" else policy.allow
    return (*allowed, *policy.disallow, *policy.legacy, *policy.custom)


def _admission(method: str, before: bool, after: bool, where: str, changes: ChangeList) -> None:
    at = f"/policies/methods/{where}"
    if after and not before:
        changes.add(METHOD_ADMITTED, "safe", at, f"{method} is admitted ({where})", new=method)
    elif before and not after:
        advice = "Requests with it get 405 or 459; move clients to another method first."
        changes.add(METHOD_REFUSED, "breaking", at, f"{method} is refused ({where})", advice, old=method)


def _redirects(
    old: Iterable[Redirect], new: Iterable[Redirect], old_endpoints: Iterable[Endpoint], changes: ChangeList
) -> None:
    before = {(entry.from_method, entry.from_path): entry for entry in old}
    after = {(entry.from_method, entry.from_path): entry for entry in new}
    at = "/policies/methods/redirects"
    for key in sorted({*before, *after}, key=str):
        one, other = before.get(key), after.get(key)
        if one is not None and other is not None:
            if one != other:
                message = f"redirect {_arrow(one)} now goes to {_target(other)}"
                advice = "See that both accept the same input."
                changes.add(REDIRECT_CHANGED, "risky", at, message, advice, old=one.to_json(), new=other.to_json())
        elif one is not None:
            message = f"redirect {_arrow(one)} is gone"
            advice = "Clients that still call the old name are refused; keep it."
            changes.add(REDIRECT_REMOVED, "breaking", at, message, advice, old=one.to_json())
        elif other is not None:
            # A redirect goes before routing, so that an endpoint it covers is no longer reached.
            covers = any(endpoint.method == key[0] and key[1] in (None, endpoint.path) for endpoint in old_endpoints)
            level: Level = "breaking" if covers else "safe"
            advice = "Calls of the endpoint that stood there go elsewhere; take the redirect back." if covers else ""
            changes.add(REDIRECT_ADDED, level, at, f"redirect {_arrow(other)} is new", advice, new=other.to_json())


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
    changes.add(CATALOG_CHANGED, level, "/catalog_version", f"catalog {old} -> {new}", advice, old=old, new=new)


def _vocabulary(old: Vocabulary, new: Vocabulary, changes: ChangeList) -> None:
    ended = "Agents that propose endpoints are refused; offer the endpoints they used."
    changes.flip(
        "/vocabulary/negotiable",
        old.negotiable,
        new.negotiable,
        (NEGOTIATION_OFFERED, "safe", "endpoints can now be negotiated", ""),
        (NEGOTIATION_ENDED, "breaking", "endpoints can no longer be negotiated", ended),
    )
    # A deployment declares verbs by its endpoints, not by a list: then there is nothing to compare.
    if old.declared_verbs and new.declared_verbs:
        at = "/vocabulary/declared_verbs"
        for verb in sorted(set(old.declared_verbs) - set(new.declared_verbs)):
            advice = "Agents that look for it go elsewhere."
            changes.add(VERB_WITHDRAWN, "risky", at, f"the verb {verb} is withdrawn", advice, old=verb)
        for verb in sorted(set(new.declared_verbs) - set(old.declared_verbs)):
            changes.add(VERB_DECLARED, "safe", at, f"the verb {verb} is declared", new=verb)
    for field in ("domain", "namespace"):
        before, after = getattr(old, field), getattr(new, field)
        if before != after:
            message, advice = f"{field}: {brief(before)} -> {brief(after)}", "Agents know the verbs by it."
            changes.add(VOCABULARY_MOVED, "risky", f"/vocabulary/{field}", message, advice, old=before, new=after)


def _data(old: DataManifest, new: DataManifest, changes: ChangeList) -> None:
    before = {entry.name: entry for entry in old.available_data}
    after = {entry.name: entry for entry in new.available_data}
    at = "/data_manifest/available_data"
    for name in sorted({*before, *after}):
        if name not in after:
            advice = "Agents can no longer negotiate for it; keep the class."
            changes.add(CLASS_REMOVED, "breaking", at, f"the data class {name} is gone", advice, old=name)
        elif name not in before:
            changes.add(CLASS_ADDED, "safe", at, f"the data class {name} is new", new=name)
        else:
            _data_class(before[name], after[name], child(at, name), changes)
    hidden = "Agents must authenticate before they learn what there is."
    changes.flip(
        "/data_manifest/pre_auth_discovery",
        old.pre_auth_discovery,
        new.pre_auth_discovery,
        (CLASS_EASED, "safe", "the data manifest is shown before authorization", ""),
        (CLASS_RESTRICTED, "breaking", "the data manifest is hidden before authorization", hidden),
    )


def _data_class(old: DataClass, new: DataClass, at: str, changes: ChangeList) -> None:
    name = f"the data class {old.name}"
    for form in sorted(set(old.formats) - set(new.formats)):
        message = f"{name} no longer comes as {form}"
        changes.add(CLASS_RESTRICTED, "breaking", f"{at}/formats", message, "Keep the format.", old=form)
    for form in sorted(set(new.formats) - set(old.formats)):
        changes.add(CLASS_EASED, "safe", f"{at}/formats", f"{name} comes as {form}", new=form)
    changes.flip(
        f"{at}/requires_authorization",
        old.requires_authorization,
        new.requires_authorization,
        (CLASS_RESTRICTED, "breaking", f"{name} now requires authorization", "Agents without it lose access."),
        (CLASS_EASED, "safe", f"{name} no longer requires authorization", ""),
    )
    if old.sensitivity != new.sensitivity:
        message = f"sensitivity of {old.name}: {brief(old.sensitivity)} -> {brief(new.sensitivity)}"
        where, advice = f"{at}/sensitivity", "Agents treat data by its sensitivity."
        changes.add(SENSITIVITY_CHANGED, "risky", where, message, advice, old=old.sensitivity, new=new.sensitivity)
    if old.description != new.description:
        message = f"description of {old.name}: {brief(old.description)} -> {brief(new.description)}"
        changes.add(WORDING_CHANGED, "safe", f"{at}/description", message, old=old.description, new=new.description)


ENDPOINT_REMOVED: Final = wire("C101", "endpoint-removed", "removed", "An endpoint is removed.")
ENDPOINT_ADDED: Final = wire("C102", "endpoint-added", "added", "An endpoint is added.")
NOT_COMPARED: Final = wire("C118", "not-compared", "changed", "bespeak could not compare a part of the contracts.")

_Compared = TypeVar("_Compared", Contract, Endpoint)


def diff_contracts(old: Contract, new: Contract) -> list[ContractChange]:
    """Return every change: those of the service first, then those of the endpoints by path and method."""
    changes = _attempt(diff_services, old, new)
    before, after = _by_shape(old), _by_shape(new)
    for key in sorted({*before, *after}):
        one, other = before.get(key), after.get(key)
        if one is not None and other is not None:
            changes += _attempt(diff_endpoints, one, other, endpoint=other)
        elif one is not None and not one.is_basic:
            changes += _removed(one, new.version)
        elif other is not None and not other.is_basic:
            added = ChangeList(str(other), other.location)
            added.add(ENDPOINT_ADDED, "safe", "", "the endpoint is new", new=str(other))
            changes += added.found
    return changes


def _attempt(
    compare: Callable[[_Compared, _Compared], list[ContractChange]],
    old: _Compared,
    new: _Compared,
    *,
    endpoint: Endpoint | None = None,
) -> list[ContractChange]:
    """Compare two parts of the contracts; if that fails, report that their changes are unknown."""
    try:
        return compare(old, new)
    except Exception as error:  # noqa: BLE001 - the other changes are still reported
        changes = ChangeList(str(endpoint), endpoint.location) if endpoint else ChangeList()
        message = f"the comparison {describe(error)}"
        advice = "This is a bug in bespeak. Compare this part yourself, and report it with both contracts."
        changes.add(NOT_COMPARED, "breaking", "", message, advice)
        return changes.found


def _by_shape(contract: Contract) -> dict[tuple[str, str], Endpoint]:
    """Index endpoints by path shape and method; the first wins if only parameter names differ."""
    found: dict[tuple[str, str], Endpoint] = {}
    for endpoint in contract.endpoints:
        found.setdefault((path_shape(endpoint.path), endpoint.method), endpoint)
    return found


def _removed(endpoint: Endpoint, version: str | None) -> list[ContractChange]:
    changes = ChangeList(str(endpoint))
    fate = endpoint.deprecated
    if fate is not None and _is_reached(fate.removed_in, version):
        told = f"the endpoint is gone, as its deprecation announced for {fate.removed_in}"
        successor = " ".join(part for part in (fate.successor_method, fate.successor_path) if part)
        advice = f"Clients must call {successor}." if successor else "Clients must do without it."
        changes.add(ENDPOINT_REMOVED, "risky", "", told, advice, old=str(endpoint))
    else:
        advice = "Keep it, and deprecate it with `removed_in` and a successor first."
        changes.add(ENDPOINT_REMOVED, "breaking", "", "the endpoint is gone", advice, old=str(endpoint))
    return changes.found


def _is_reached(removed_in: str | None, version: str | None) -> bool:
    end, now = parse_version(removed_in or ""), parse_version(version or "")
    return end is not None and now is not None and now >= end
