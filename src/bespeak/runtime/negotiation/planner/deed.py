"""Deeds: the call that changes something, chosen by the verb and the noun of a proposal and by nothing else."""

from __future__ import annotations

from typing import Final

from bespeak.runtime.negotiation.plan import Miss
from bespeak.runtime.negotiation.planner.choice import Decision, Option, Result
from bespeak.runtime.negotiation.planner.operation import Operation
from bespeak.runtime.negotiation.planner.search import Search
from bespeak.runtime.negotiation.planner.term import other_names
from bespeak.runtime.negotiation.planner.wish import Wish
from bespeak.text.language.meanings import meanings
from bespeak.text.language.operation_class import operation_classes

_DEEDS: Final = 12
_MAKING: Final = frozenset(("ADD", "CREATE", "INSERT", "MAKE", "REGISTER"))
"""Verbs whose object does not exist yet."""
_SYNONYM: Final = 0.85
_CLASS: Final = 0.5
"""Verbs of one class, such as PAY and REFUND, may do different things."""


def deeds(search: Search, depth: int) -> tuple[list[Option], Miss | None]:
    """Return the ways to do what the proposal says within the impact that it claims, and what it lacks for the best."""
    wish = search.wish
    found: list[tuple[float, Operation]] = []
    beyond: Operation | None = None
    elsewhere: Operation | None = None
    for operation in search.index.operations:
        if not operation.impact or not search.allows(operation):
            continue
        if not _is_about(operation, wish):
            elsewhere = elsewhere or (operation if operation.endpoint.method == wish.endpoint.method else None)
            continue
        search.spend()
        score = _alike(operation.endpoint.method, wish.endpoint.method)
        if operation.impact > wish.impact:
            beyond = beyond or (operation if score > _CLASS else None)
        elif score:
            found.append((score, operation))
    ranked = sorted(found, key=lambda one: (-one[0], one[1].impact, len(one[1].required), one[1].number))
    options = []
    for score, operation in ranked[:_DEEDS]:
        doubt = "" if score > _CLASS else f"Is {operation.endpoint.method} what {wish.endpoint.method} means?"
        verb = frozenset((Decision(f"verb {operation.number}", score, 2 * (1 - score), doubt),))
        ways = [way for way in search.call(operation, search.given, depth) if not _makes_known(operation, way)]
        options += [Option(way.value, way.decisions | verb, way.calls) for way in ways]
    if beyond is not None and (not ranked or ranked[0][0] < 1):
        reason = f"`{beyond.endpoint}` is {beyond.endpoint.semantic.impact}; the proposal claims less."
        return options, Miss(field="semantic.impact", reason=reason, nearest=beyond.endpoint)
    if ranked:
        nearest = ranked[0][1]
        lacking = [field for field in nearest.required if not search.at_hand(field, search.given, nearest)]
        if options and not lacking:
            return options, None
        names = ", ".join(f"`{field.name}`" for field in lacking) or "its inputs"
        return options, Miss(field="input", reason=f"`{nearest.endpoint}` needs {names}.", nearest=nearest.endpoint)
    if not wish.impact:
        reason = f"{wish.endpoint.method} changes something, but the proposal claims that it is informational."
        return [], Miss(field="semantic.impact", reason=reason)
    reason = f"No usable endpoint does {wish.endpoint.method} to a {wish.noun}."
    return [], Miss(field=wish.endpoint.path, reason=reason, nearest=elsewhere.endpoint if elsewhere else None)


def _makes_known(operation: Operation, way: Option) -> bool:
    """Return True if something is to be created that was looked up before: another thing is meant."""
    assert isinstance(way.value, Result)
    own = [value for field, value in way.value.call.bindings if operation.resource.noun in field.identifies]
    return operation.endpoint.method in _MAKING and any(value.calls for value in own)


def _is_about(operation: Operation, wish: Wish) -> bool:
    """Return True if an operation acts on the noun of the proposal, and on no part of another thing."""
    own, parent = operation.resource.noun, operation.resource.parent
    if own != wish.noun and own not in other_names(wish.noun):
        return False
    return not (parent and wish.resource.parent) or parent in wish.path_terms


def _alike(verb: str, wanted: str) -> float:
    verb, wanted = verb.lower(), wanted.lower()
    if verb == wanted:
        return 1.0
    if meanings().synonymous(verb, wanted):
        return _SYNONYM
    one, other = operation_classes(verb), operation_classes(wanted)
    return _CLASS if one is not None and other is not None and one.main == other.main else 0.0
