"""Changes between two contracts, the parts of services that clients see, and between two endpoints, for clients."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from bespeak.checks.evolution.change import (
    WORDING_CHANGED,
    ChangeList,
    ChangeRule,
    ContractChange,
    Level,
    Told,
    canonical,
    contract,
    wire,
)
from bespeak.checks.evolution.schema_diff import diff_schemas
from bespeak.checks.lint.subject import describe
from bespeak.contract.catalog.catalog import parse_version
from bespeak.contract.endpoint import IMPACTS, Deprecation, Endpoint, Semantic
from bespeak.contract.limits import Cost
from bespeak.contract.policy import MethodPolicy, Policies, Redirect, is_of_server
from bespeak.contract.service import DataClass, DataManifest, Service, Vocabulary
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.protocol.exchange.header_values import UNITS, format_amount
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.source.pointer import child

IMPACT_RAISED: Final = contract("C150", "impact-raised", "narrowed")
IMPACT_LOWERED: Final = contract("C151", "impact-lowered", "widened")
IDEMPOTENCY_LOST: Final = contract("C152", "idempotency-lost", "narrowed")
IDEMPOTENCY_GAINED: Final = contract("C153", "idempotency-gained", "widened")
CONFIDENCE_LOWERED: Final = contract("C154", "confidence-lowered", "narrowed")
CONFIDENCE_RAISED: Final = contract("C155", "confidence-raised", "widened")
GUIDANCE_RAISED: Final = contract("C156", "guidance-raised", "narrowed")
GUIDANCE_LOWERED: Final = contract("C157", "guidance-lowered", "widened")
CAPABILITY_CHANGED: Final = contract("C158", "capability-changed", "changed")
TRANSITION_CHANGED: Final = contract("C159", "state-transition-changed", "changed")
TOOL_NAME_CHANGED: Final = wire("C160", "tool-name-changed", "changed")
ACTOR_CHANGED: Final = contract("C161", "actor-changed", "changed")
CONCEPTS_CHANGED: Final = contract("C162", "concepts-changed", "changed")

_PLAIN: Final = ("impact", "capability")  # fields whose words are shown without quotes
_Effect = tuple[ChangeRule, Level, str]  # rule, level and advice
_ORDERED: Final[tuple[tuple[str, Callable[[Any], float], _Effect, _Effect], ...]] = (
    (
        "impact",
        lambda value: IMPACTS.index(value) if value in IMPACTS else math.nan,
        (IMPACT_RAISED, "breaking", "Agents that call it without asking must ask now."),
        (IMPACT_LOWERED, "risky", "Agents will ask people less often: be sure that the call can be undone."),
    ),
    (
        "is_idempotent",
        bool,
        (IDEMPOTENCY_GAINED, "safe", ""),
        (
            IDEMPOTENCY_LOST,
            "breaking",
            "Clients that repeat a call after a lost connection will do it twice; keep repeated calls harmless.",
        ),
    ),
    (
        "confidence",
        float,
        (CONFIDENCE_RAISED, "safe", ""),
        (CONFIDENCE_LOWERED, "risky", "Agents with a threshold between the two values will stop calling it."),
    ),
    (
        "confidence_guidance",
        lambda value: value or 0.0,
        (GUIDANCE_RAISED, "risky", "Agents that acted alone will ask people first."),
        (GUIDANCE_LOWERED, "risky", "Agents will act alone in cases where they asked before."),
    ),
)
"""Fields with an order, how they are measured, and what a higher and a lower value mean."""


def _shown(value: object) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, float) else brief(value)


def diff_semantics(old: Semantic, new: Semantic, changes: ChangeList) -> None:
    """Add every change between two semantic blocks."""
    changes = changes.facing("semantics")

    def report(field: str, rule: ChangeRule, level: Level, advice: str = "") -> None:
        before, after = getattr(old, field), getattr(new, field)
        shown = str if field in _PLAIN else _shown
        message = f"{field}: {shown(before)} -> {shown(after)}"
        changes.add(rule, level, f"/semantic/{field}", message, advice, old=before, new=after)

    def differs(field: str) -> bool:
        return canonical(getattr(old, field)) != canonical(getattr(new, field))

    for field, measure, raised, lowered in _ORDERED:
        before, after = measure(getattr(old, field)), measure(getattr(new, field))
        if after > before:
            report(field, *raised)
        elif after < before:
            report(field, *lowered)
    # An empty capability is inherited from the catalog: there is nothing to compare it with.
    if old.capability and new.capability and differs("capability"):
        advice = "Agents that choose endpoints by capability will no longer find it."
        report("capability", CAPABILITY_CHANGED, "risky", advice)
    if differs("actor"):
        report("actor", ACTOR_CHANGED, "risky", "The previous actor may no longer initiate it.")
    if differs("state_transition"):
        advice = "Agents that rely on the state after the call must adapt."
        report("state_transition", TRANSITION_CHANGED, "risky", advice)
    if differs("mcp_tool_name"):
        advice = "MCP clients call the tool by this name; keep the old one."
        report("mcp_tool_name", TOOL_NAME_CHANGED, "breaking" if old.mcp_tool_name else "risky", advice)
    if differs("concepts"):
        removed = set(old.concepts) - set(new.concepts)
        advice = "Agents that look for a removed concept will no longer find the endpoint." if removed else ""
        report("concepts", CONCEPTS_CHANGED, "risky" if removed else "safe", advice)
    for field in filter(differs, ("intent", "outcome", "parameter_hints")):
        report(field, WORDING_CHANGED, "safe")


PARAMETER_RENAMED: Final = wire("C103", "path-parameter-renamed", "changed")
NAMESPACE_CHANGED: Final = contract("C105", "namespace-changed", "changed")
HANDLER_CHANGED: Final = contract("C106", "handler-kind-changed", "changed")
DEPRECATED: Final = contract("C107", "deprecated", "added")
DEPRECATION_WITHDRAWN: Final = contract("C108", "deprecation-withdrawn", "removed")
DEPRECATION_CHANGED: Final = contract("C109", "deprecation-changed", "changed")
SCOPE_ADDED: Final = wire("C110", "scope-added", "narrowed")
SCOPE_REMOVED: Final = wire("C111", "scope-removed", "widened")
ERROR_REMOVED: Final = wire("C112", "error-removed", "removed")
ERROR_ADDED: Final = wire("C113", "error-added", "added")
COST_RAISED: Final = wire("C114", "cost-raised", "narrowed")
COST_LOWERED: Final = wire("C115", "cost-lowered", "widened")
SINCE_REMOVED: Final = wire("C116", "since-removed", "removed")
SINCE_ADDED: Final = wire("C117", "since-added", "added")

_PARAMETER: Final = re.compile(r"\{([^{}/]*)\}")


def path_shape(path: str) -> str:
    """Return the path with parameter names removed, because renaming a parameter keeps the endpoint."""
    return _PARAMETER.sub("{}", path)


def diff_endpoints(old: Endpoint, new: Endpoint) -> list[ContractChange]:
    """Return every change between two endpoints with the same method and path shape."""
    changes = ChangeList(str(new), new.location)
    renamed = _parameters(old.path, new.path, changes)
    diff_schemas(_with_names(old.input_schema, renamed), new.input_schema, "request", "/input_schema", changes)
    diff_schemas(old.output_schema, new.output_schema, "response", "/output_schema", changes)
    _scopes(old, new, changes)
    _errors(old, new, changes.facing("response"))
    diff_semantics(old.semantic, new.semantic, changes)
    _deprecation(old.deprecated, new.deprecated, changes.facing("semantics"))
    _cost(old.cost, new.cost, changes)
    _since(old.since, new.since, changes)
    _circumstances(old, new, changes.facing("semantics"))
    return changes.found


def _parameters(old: str, new: str, changes: ChangeList) -> dict[str, str]:
    """Report renamed parameters and return the new name of each."""
    before, after = _PARAMETER.findall(old), _PARAMETER.findall(new)
    renamed = {one: other for one, other in zip(before, after, strict=True) if one != other}
    for one, other in renamed.items():
        message = f"path parameter {{{one}}} -> {{{other}}}"
        advice = "Clients that fill in the path by name must use the new one; keep the old name."
        changes.add(PARAMETER_RENAMED, "breaking", "/path", message, advice, old=one, new=other)
    return renamed


def _with_names(schema: Mapping[str, Any], renamed: Mapping[str, str]) -> Mapping[str, Any]:
    """Rename the path parameters of an input schema, so that a renaming is reported once."""
    properties = schema.get("properties")
    if not renamed or not isinstance(properties, Mapping):
        return schema
    changed = {**schema, "properties": {renamed.get(name, name): value for name, value in properties.items()}}
    required = schema.get("required")
    if isinstance(required, list):
        changed["required"] = [renamed.get(name, name) if isinstance(name, str) else name for name in required]
    return changed


def _scopes(old: Endpoint, new: Endpoint, changes: ChangeList) -> None:
    before, after = set(old.required_scopes), set(new.required_scopes)
    for scope in sorted(after - before):
        advice = "Callers without the scope get 455; give it to them first, or keep the endpoint free of it."
        changes.add(SCOPE_ADDED, "breaking", "/required_scopes", f"the scope {scope} is required", advice, new=scope)
    for scope in sorted(before - after):
        changes.add(SCOPE_REMOVED, "safe", "/required_scopes", f"the scope {scope} is no longer required", old=scope)


def _errors(old: Endpoint, new: Endpoint, changes: ChangeList) -> None:
    before = {error.name: error.description for error in old.errors}
    after = {error.name: error.description for error in new.errors}
    added = sorted(after.keys() - before.keys())
    for name in sorted(before.keys() - after.keys()):
        if added:
            # Nothing tells a new name for the old error from another error: the worse of the two counts.
            message = f"the error {name} is gone, perhaps renamed to {' or '.join(added[:3])}"
            advice = "Clients that handle it by name no longer do. Keep the name, or declare both for a while."
            changes.add(ERROR_REMOVED, "breaking", "/errors", message, advice, old=name)
        else:
            changes.add(ERROR_REMOVED, "safe", "/errors", f"the error {name} is gone", old=name)
    for name in added:
        advice = "Clients that handle errors by name do not know it; a renamed error is lost to them."
        changes.add(ERROR_ADDED, "risky", "/errors", f"the error {name} is new", advice, new=name)
    for name in sorted(before.keys() & after.keys()):
        # A manifest has the names alone.
        if before[name] and after[name] and before[name] != after[name]:
            message = f"description of the error {name}: {brief(before[name])} -> {brief(after[name])}"
            old_text, new_text = f"{name}: {before[name]}", f"{name}: {after[name]}"
            changes.add(WORDING_CHANGED, "safe", "/errors", message, old=old_text, new=new_text)


def _deprecation(old: Deprecation | None, new: Deprecation | None, changes: ChangeList) -> None:
    at = "/deprecated"
    if old is None and new is not None:
        message, advice = f"deprecated: {new.warning()}", "Nothing breaks yet; clients should move on."
        changes.add(DEPRECATED, "safe", at, message, advice, new=new.to_json())
    elif old is not None and new is None:
        changes.add(DEPRECATION_WITHDRAWN, "safe", at, "it is no longer deprecated", old=old.to_json())
    elif old is not None and new is not None and old != new:
        message = f"deprecated: {old.warning()} -> {new.warning()}"
        level: Level = "risky" if _is_sooner(old.removed_in, new.removed_in) else "safe"
        advice = "Clients that planned with the old end have less time." if level == "risky" else ""
        changes.add(DEPRECATION_CHANGED, level, at, message, advice, old=old.to_json(), new=new.to_json())


def _is_sooner(old: str | None, new: str | None) -> bool:
    """Return True if the removal comes earlier than announced. Incomparable versions count as earlier."""
    if new is None or old == new:
        return False
    before, after = parse_version(old or ""), parse_version(new)
    return before is None or after is None or after < before


def _cost(old: Cost | None, new: Cost | None, changes: ChangeList) -> None:
    """Report one change for each unit whose cost changed; a missing cost counts as zero."""
    before, after = old.amounts if old else {}, new.amounts if new else {}
    for unit in UNITS:
        one, other = before.get(unit), after.get(unit)
        if one == other:
            continue
        old_text = None if one is None else format_amount(unit, one)
        new_text = None if other is None else format_amount(unit, other)
        place, message = f"/cost/{unit}", f"cost in {unit}: {old_text or 'none'} -> {new_text or 'none'}"
        if (other or 0) >= (one or 0) and other is not None:
            advice = "Callers whose Budget-Limit is below the new cost get 456; tell them first."
            changes.add(COST_RAISED, "risky", place, message, advice, old=old_text, new=new_text)
        else:
            changes.add(COST_LOWERED, "safe", place, message, old=old_text, new=new_text)


def _since(old: str | None, new: str | None, changes: ChangeList) -> None:
    """Report whether `?since=` is supported; the field it compares with does not concern callers."""
    if old is not None and new is None:
        advice = "Callers that send ?since= get 400; keep `since` in the contract."
        changes.add(SINCE_REMOVED, "breaking", "/since", "since is gone", advice, old=old)
    elif old is None and new is not None:
        changes.add(SINCE_ADDED, "safe", "/since", "calls may ask by since", new=new)


def _circumstances(old: Endpoint, new: Endpoint, changes: ChangeList) -> None:
    changes.differ("/description", old.description, new.description, (WORDING_CHANGED, "safe", "description", ""))
    advice = "Agents that hold several services know the verb by its namespace."
    changes.differ("/namespace", old.namespace, new.namespace, (NAMESPACE_CHANGED, "risky", "namespace", advice))
    before, after = old.handler.type, new.handler.type
    # An AGIS document says nothing of handlers.
    if before and after and before != after:
        changes.add(HANDLER_CHANGED, "safe", "/handler/type", f"handler: {before} -> {after}", old=before, new=after)


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


POLICY_TIGHTENED: Final = wire("C170", "policy-tightened", "narrowed")
POLICY_LOOSENED: Final = wire("C171", "policy-loosened", "widened")
METHOD_REFUSED: Final = wire("C172", "method-refused", "narrowed")
METHOD_ADMITTED: Final = wire("C173", "method-admitted", "widened")
REDIRECT_ADDED: Final = wire("C178", "redirect-added", "added")
REDIRECT_REMOVED: Final = wire("C179", "redirect-removed", "removed")
REDIRECT_CHANGED: Final = wire("C180", "redirect-changed", "changed")
CATALOG_CHANGED: Final = contract("C181", "catalog-changed", "changed")
NEGOTIATION_ENDED: Final = contract("C185", "negotiation-ended", "narrowed")
NEGOTIATION_OFFERED: Final = contract("C186", "negotiation-offered", "widened")
VERB_WITHDRAWN: Final = contract("C187", "verb-withdrawn", "removed")
VERB_DECLARED: Final = contract("C188", "verb-declared", "added")
VOCABULARY_MOVED: Final = contract("C189", "vocabulary-moved", "changed")
CLASS_REMOVED: Final = contract("C190", "data-class-removed", "removed")
CLASS_ADDED: Final = contract("C191", "data-class-added", "added")
CLASS_RESTRICTED: Final = contract("C192", "data-class-restricted", "narrowed")
CLASS_EASED: Final = contract("C193", "data-class-eased", "widened")
SENSITIVITY_CHANGED: Final = contract("C194", "sensitivity-changed", "changed")

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
        before, after, advice = getattr(old, field), getattr(new, field), "Agents know the verbs by it."
        changes.differ(f"/vocabulary/{field}", before, after, (VOCABULARY_MOVED, "risky", field, advice))


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
    told: Told = (SENSITIVITY_CHANGED, "risky", f"sensitivity of {old.name}", "Agents treat data by its sensitivity.")
    changes.differ(f"{at}/sensitivity", old.sensitivity, new.sensitivity, told)
    told = (WORDING_CHANGED, "safe", f"description of {old.name}", "")
    changes.differ(f"{at}/description", old.description, new.description, told)


ENDPOINT_REMOVED: Final = wire("C101", "endpoint-removed", "removed")
ENDPOINT_ADDED: Final = wire("C102", "endpoint-added", "added")
NOT_COMPARED: Final = wire("C118", "not-compared", "changed")

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
    end, now = parse_version((fate and fate.removed_in) or ""), parse_version(version or "")
    if fate is not None and end is not None and now is not None and now >= end:
        told = f"the endpoint is gone, as its deprecation announced for {fate.removed_in}"
        successor = " ".join(part for part in (fate.successor_method, fate.successor_path) if part)
        advice = f"Clients must call {successor}." if successor else "Clients must do without it."
        changes.add(ENDPOINT_REMOVED, "risky", "", told, advice, old=str(endpoint))
    else:
        advice = "Keep it, and deprecate it with `removed_in` and a successor first."
        changes.add(ENDPOINT_REMOVED, "breaking", "", "the endpoint is gone", advice, old=str(endpoint))
    return changes.found
