"""Changes between two contracts, endpoint by endpoint, from the view of a client of the old one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from bespeak.checks.evolution.change import ChangeList, ContractChange
from bespeak.checks.evolution.change_rules import wire_rule
from bespeak.checks.evolution.contract import Contract
from bespeak.checks.evolution.endpoint_diff import diff_endpoints, path_shape
from bespeak.checks.evolution.service_diff import diff_services
from bespeak.checks.lint.failed_check import describe
from bespeak.contract.catalog.version import parse_version
from bespeak.contract.endpoint import Endpoint

ENDPOINT_REMOVED: Final = wire_rule("C101", "endpoint-removed", "removed", "An endpoint is removed.")
ENDPOINT_ADDED: Final = wire_rule("C102", "endpoint-added", "added", "An endpoint is added.")
NOT_COMPARED: Final = wire_rule("C118", "not-compared", "changed", "bespeak could not compare a part of the contracts.")

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
            changes += _added(other)
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
        changes.add(NOT_COMPARED, "breaking", "", message, advice=advice)
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
        changes.add(ENDPOINT_REMOVED, "risky", "", told, old=str(endpoint), advice=advice)
    else:
        advice = "Keep it, and deprecate it with `removed_in` and a successor first."
        changes.add(ENDPOINT_REMOVED, "breaking", "", "the endpoint is gone", old=str(endpoint), advice=advice)
    return changes.found


def _is_reached(removed_in: str | None, version: str | None) -> bool:
    end, now = parse_version(removed_in or ""), parse_version(version or "")
    return end is not None and now is not None and now >= end


def _added(endpoint: Endpoint) -> list[ContractChange]:
    changes = ChangeList(str(endpoint), endpoint.location)
    changes.add(ENDPOINT_ADDED, "safe", "", "the endpoint is new", new=str(endpoint))
    return changes.found
