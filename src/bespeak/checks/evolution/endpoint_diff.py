"""Changes between two versions of one endpoint, its semantic block included."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from bespeak.checks.evolution.change import (
    WORDING_CHANGED,
    ChangeList,
    ChangeRule,
    ContractChange,
    Level,
    canonical,
    contract,
    wire,
)
from bespeak.checks.evolution.schema_diff import diff_schemas
from bespeak.contract.catalog.catalog import parse_version
from bespeak.contract.endpoint import IMPACTS, Deprecation, Endpoint, Semantic
from bespeak.contract.limits import Cost
from bespeak.protocol.exchange.header_values import UNITS, format_amount
from bespeak.text.diagnostics.diagnostic import brief

IMPACT_RAISED: Final = contract("C150", "impact-raised", "narrowed", "The effect of a call is harder to undo.")
IMPACT_LOWERED: Final = contract("C151", "impact-lowered", "widened", "The effect of a call is easier to undo.")
IDEMPOTENCY_LOST: Final = contract("C152", "idempotency-lost", "narrowed", "A call can no longer be repeated safely.")
IDEMPOTENCY_GAINED: Final = contract("C153", "idempotency-gained", "widened", "A call can be repeated safely.")
CONFIDENCE_LOWERED: Final = contract("C154", "confidence-lowered", "narrowed", "The declared confidence is lower.")
CONFIDENCE_RAISED: Final = contract("C155", "confidence-raised", "widened", "The declared confidence is higher.")
GUIDANCE_RAISED: Final = contract(
    "C156", "guidance-raised", "narrowed", "Agents need a higher confidence to act alone."
)
GUIDANCE_LOWERED: Final = contract(
    "C157", "guidance-lowered", "widened", "Agents need a lower confidence to act alone."
)
CAPABILITY_CHANGED: Final = contract(
    "C158", "capability-changed", "changed", "An endpoint belongs to another capability."
)
TRANSITION_CHANGED: Final = contract(
    "C159", "state-transition-changed", "changed", "The state transition of a call is changed."
)
TOOL_NAME_CHANGED: Final = wire("C160", "tool-name-changed", "changed", "The MCP tool name of an endpoint is changed.")
ACTOR_CHANGED: Final = contract("C161", "actor-changed", "changed", "The actor of a call is changed.")
CONCEPTS_CHANGED: Final = contract("C162", "concepts-changed", "changed", "An endpoint has other concepts.")

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


PARAMETER_RENAMED: Final = wire("C103", "path-parameter-renamed", "changed", "A path parameter is renamed.")
NAMESPACE_CHANGED: Final = contract("C105", "namespace-changed", "changed", "The namespace of an endpoint is changed.")
HANDLER_CHANGED: Final = contract("C106", "handler-kind-changed", "changed", "An endpoint has another kind of handler.")
DEPRECATED: Final = contract("C107", "deprecated", "added", "An endpoint is deprecated.")
DEPRECATION_WITHDRAWN: Final = contract(
    "C108", "deprecation-withdrawn", "removed", "An endpoint is no longer deprecated."
)
DEPRECATION_CHANGED: Final = contract(
    "C109", "deprecation-changed", "changed", "The end or the successor of a deprecated endpoint is changed."
)
SCOPE_ADDED: Final = wire("C110", "scope-added", "narrowed", "A call needs a further scope.")
SCOPE_REMOVED: Final = wire("C111", "scope-removed", "widened", "A call no longer needs a scope.")
ERROR_REMOVED: Final = wire("C112", "error-removed", "removed", "A declared error is removed.")
ERROR_ADDED: Final = wire("C113", "error-added", "added", "A declared error is added.")
COST_RAISED: Final = wire("C114", "cost-raised", "narrowed", "A call costs more, or has a cost where it had none.")
COST_LOWERED: Final = wire("C115", "cost-lowered", "widened", "A call costs less, or no longer has a cost.")
SINCE_REMOVED: Final = wire(
    "C116", "since-removed", "removed", "A call can no longer be limited to changes since a time."
)
SINCE_ADDED: Final = wire("C117", "since-added", "added", "A call can be limited to changes since a time.")

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
    if old.description != new.description:
        message = f"description: {brief(old.description)} -> {brief(new.description)}"
        changes.add(WORDING_CHANGED, "safe", "/description", message, old=old.description, new=new.description)
    if old.namespace != new.namespace:
        message = f"namespace: {brief(old.namespace)} -> {brief(new.namespace)}"
        advice = "Agents that hold several services know the verb by its namespace."
        changes.add(NAMESPACE_CHANGED, "risky", "/namespace", message, advice, old=old.namespace, new=new.namespace)
    before, after = old.handler.type, new.handler.type
    # An AGIS document says nothing of handlers.
    if before and after and before != after:
        changes.add(HANDLER_CHANGED, "safe", "/handler/type", f"handler: {before} -> {after}", old=before, new=after)
