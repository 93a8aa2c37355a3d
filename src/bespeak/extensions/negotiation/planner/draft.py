"""Drafts: complete plans before they are judged, with the choices made for every wanted value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, Final, NamedTuple

from bespeak.contract.endpoint import IMPACTS, Endpoint
from bespeak.extensions.negotiation.plan import Miss
from bespeak.extensions.negotiation.planner.operation import (
    NUMBERS,
    TIMES,
    OutputRows,
    PlanField,
    PlanOperation,
    read_inputs,
    read_outputs,
)
from bespeak.extensions.negotiation.planner.slot import ITEM, Facts, SchemaTooLarge, Slot, Unnameable, slots_of
from bespeak.extensions.negotiation.planner.vocabulary import (
    COLLECTIVE,
    WRAPPERS,
    NounReading,
    PathResource,
    ServiceNouns,
    noun_of,
    resource_of,
)
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.language.names import join, other_names, plural, stems
from bespeak.text.language.operation_class import operation_classes

MOST_FIELDS: Final = 200  # most fields of a proposed input or output
LEVELS: Final = 5
_TAIL: Final = 3  # last words of a noun by which a longer name is looked for: a proposal may have hundreds
TOP_LIST: Final = Miss(
    field="output", reason="A composition answers with an object; put the list into a field of its output."
)
NO_OUTPUT: Final = Miss(field="output", reason="The proposal does not say which fields it wants.")


_ANY: Final = "any"
_TIME: Final = "time"
_TIMES: Final = frozenset(("at", "date", "time"))  # last words of columns of times


class Superlative(NamedTuple):
    """A phrase such as `cheapest` or `top-rated`: which end of an order, by which attributes."""

    words: frozenset[str]
    is_most: bool
    attributes: frozenset[str]

    def column(self, rows: OutputRows, wanted: tuple[PlanField, ...]) -> tuple[PlanField | None, float]:
        """Return the column that orders the rows, and how sure it is; of several the one that is wanted."""
        plain = [one for one in rows.fields if not (one.lists > 1 or one.inner or one.identifies or "." in one.column)]
        if _TIME in self.attributes:
            found = [one for one in plain if one.facts.format in TIMES or one.term == "year"]
            texts = [one for one in plain if one.facts.kind == "string" and not _TIMES.isdisjoint(one.stems[-1:])]
            if not found:  # times as texts, which have no stated order
                return (texts[0], 0.6) if texts else (None, 0.0)
        else:
            numbers = [one for one in plain if one.facts.kind in NUMBERS]
            found = [one for one in numbers if _ANY in self.attributes or self.attributes & set(one.stems)]
        names = {one.term for one in wanted}
        for chosen in (found, [one for one in found if one.term in names]):
            if len(chosen) == 1:
                return chosen[0], 0.95
        return (found[0], 0.6) if found else (None, 0.0)


@dataclass(frozen=True, eq=False)
class WantedTable:
    """A wanted list, or a list from which wanted fields are made."""

    path: tuple[str, ...]
    nouns: tuple[str, ...]
    columns: tuple[PlanField, ...]
    doubt: str = ""  # why it may mean something else; empty if nothing is open
    way: str = ""  # `first` for the fields of one row, `reduce` for `reduced`; empty for the list itself
    order: Superlative | None = None
    reduced: tuple[tuple[PlanField, str, PlanField | None], ...] = ()  # fields, each with how and of which column

    @property
    def text(self) -> str:
        if not self.path:
            return ", ".join(field.text for field in self.made)
        return ".".join(self.path).replace(f".{ITEM}", ITEM)

    @property
    def made(self) -> tuple[PlanField, ...]:
        """Fields that a proposal wants of it."""
        return tuple(field for field, *_ in self.reduced) or self.columns


@dataclass(frozen=True, eq=False)
class Wish:
    endpoint: Endpoint
    resource: PathResource
    noun: str  # what it deals with, as the service calls it
    givens: tuple[PlanField, ...]
    singles: tuple[PlanField, ...]  # fields wanted outside of lists
    tables: tuple[WantedTable, ...]
    said: frozenset[str]  # terms that it mentions: segments, nouns of inputs, containers
    must: tuple[str, ...]  # terms of the path that the service knows, so that a plan must deal with them
    unknown: tuple[str, ...]  # words of the path that the service does not know
    part: str = ""  # what the last segment calls a part of the noun; empty if it is the noun

    @cached_property
    def path_terms(self) -> frozenset[str]:
        return frozenset((*self.must, *self.resource.nouns, self.noun))

    @cached_property
    def views(self) -> frozenset[str]:
        """Terms that may name a view: whole segments, phrases and words of the path."""
        found: set[str] = set()
        for segment in self.resource.segments:
            found |= {segment.term, *segment.stems, *(join(phrase) for phrase in segment.phrases)}
        return frozenset(found)

    @property
    def wanted(self) -> list[PlanField]:
        return [*self.singles, *(field for table in self.tables for field in table.made)]

    @cached_property
    def below(self) -> frozenset[str]:
        """Terms of whole segments behind a parameter, which name a part of the thing that it identifies."""
        found: set[str] = set()
        behind = False
        for segment in self.resource.segments:
            found |= {segment.term, noun_of(segment.stems)} if behind else set()
            behind = behind or bool(segment.parameter)
        return frozenset(found)

    @property
    def is_effect(self) -> bool:
        return not is_reading(self.endpoint.method)

    @property
    def impact(self) -> int:
        claimed = self.endpoint.semantic.impact
        return IMPACTS.index(claimed) if claimed in IMPACTS else 0


def is_reading(method: str) -> bool:
    """Return True if a verb changes nothing; unknown ones do."""
    classes = operation_classes(method.lower())
    return classes is not None and classes.main in ("READ", "ANALYZE")


def read_wish(proposal: Endpoint, vocabulary: ServiceNouns, *, is_part: bool = False) -> Wish | Miss:
    """Read a proposal, or return a Miss. If `is_part`, the last noun of the path is a part of the one before it."""
    takes, yields = _slots(proposal.input_schema, "input"), _slots(proposal.output_schema, "output")
    if isinstance(takes, Miss):
        return takes
    if isinstance(yields, Miss):
        return yields
    if any(slot.path == ("",) for slot in yields):
        return TOP_LIST
    resource = resource_of(proposal.path, vocabulary.things | vocabulary.nouns)
    declared = {slot.path[0] for slot in takes}
    missing = [name for name, _ in resource.owners if name not in declared]
    takes += slots_of(
        {"properties": {name: {"type": "string"} for name in missing}, "required": missing}, most=50, levels=1
    )
    noun = _noun(resource, vocabulary, is_part=is_part, reads=is_reading(proposal.method))
    taken = read_inputs(takes, resource, vocabulary, is_proposed=True)
    named = (vocabulary.row_noun(slot.path) for slot in yields if slot.item is not None and slot.is_container)
    listed = [_known(one, vocabulary) for one in named if one is not None]
    also = [one for one in (*_path_terms(resource, taken, vocabulary)[0], *listed) if one in vocabulary.nouns]
    givens = tuple(_owned(field, resource, vocabulary, also) for field in taken)
    known = PathResource(resource.segments, noun, _known(resource.parent, vocabulary), resource.view, resource.owners)
    reads = is_reading(proposal.method)
    outputs = tuple(
        replace(one, is_wanted=True, readings=_renamed(one.readings, resource.noun, noun, is_part=is_part))
        for one in read_outputs(yields, known, vocabulary, is_listing=reads)
    )
    tables = tuple(
        _table(field, outputs, noun, vocabulary)
        for field in outputs
        if field.item is not None and field.inner and not field.lists
    )
    singles = tuple(field for field in outputs if not field.lists and not field.inner)
    if not outputs and reads:
        return NO_OUTPUT
    must, unknown = _path_terms(resource, givens, vocabulary)
    said = _said(resource, givens, outputs, vocabulary)
    part = resource.nouns[-1] if is_part else ""
    return Wish(proposal, resource, noun, givens, singles, tables, said, must, unknown, part)


def _renamed(readings: tuple[NounReading, ...], said: str, noun: str, *, is_part: bool) -> tuple[NounReading, ...]:
    """Add what readings mean if what a proposal calls by one name has a longer one here, or is a part of the noun."""
    if is_part:  # `/payees/{id}/address`: its `city` is the `address_city` of the payee
        own = (NounReading(noun, f"{said}_{one.attribute}") for one in readings if one.noun == noun)
        return tuple(dict.fromkeys((*readings, *own)))
    parts = tuple(said.split("_"))
    tails = {join(parts[at:]) for at in range(len(parts))} if noun != said else set()
    more = (NounReading(noun, one.attribute) for one in readings if one.noun in tails and noun.endswith(f"_{one.noun}"))
    return tuple(dict.fromkeys((*readings, *more)))


def find_noun(proposal: Endpoint, vocabulary: ServiceNouns) -> str:
    """Return what a path deals with, as the service calls it."""
    resource = resource_of(proposal.path, vocabulary.things | vocabulary.nouns)
    return _noun(resource, vocabulary, is_part=False, reads=is_reading(proposal.method))


def _noun(resource: PathResource, vocabulary: ServiceNouns, *, is_part: bool, reads: bool) -> str:
    nouns = [_known(noun, vocabulary) for noun in reversed(resource.nouns[:-1] if is_part else resource.nouns)]
    if reads:
        nouns = [_begun(one, vocabulary) for one in nouns]
    noun = next((one for one in nouns if one in vocabulary.nouns), resource.noun)
    if nouns and nouns[0] not in vocabulary.nouns:
        noun = _longer(nouns[0], nouns[1:], vocabulary) or noun
    return noun if noun in vocabulary.nouns else _begun(noun, vocabulary)


def _longer(noun: str, owners: list[str], vocabulary: ServiceNouns) -> str:
    """Return the longer name of a noun: `account_statement` below accounts, or the only one that ends so; else ''."""
    parts = tuple(noun.split("_"))[-_TAIL:]
    for at in range(len(parts)):
        tail = join(parts[at:])
        owned = [f"{owner}_{tail}" for owner in owners]
        found = [one for one in owned if one in vocabulary.resources]
        found = found or sorted(one for one in vocabulary.resources if one.endswith(f"_{tail}"))
        if len(found) == 1:
            return found[0]
    return ""


def _slots(schema: Mapping[str, Any], name: str) -> list[Slot] | Miss:
    try:
        return slots_of(schema, most=MOST_FIELDS, levels=LEVELS, strict=True)
    except SchemaTooLarge:
        reason = f"The {name} has more than {MOST_FIELDS} fields or {LEVELS} levels; propose a smaller one."
    except Unnameable as error:
        reason = f"The {name} has a field named {brief(str(error))}; names must not be empty or contain `.` or `[]`."
    return Miss(field=name, reason=reason)


def _known(noun: str, vocabulary: ServiceNouns) -> str:
    """Return a noun as the service calls it: itself, or its known end, as `order` of `latest_order`."""
    if not noun or noun in vocabulary.nouns:
        return noun
    parts = tuple(noun.split("_"))
    tails = [join(parts[at:]) for at in range(1, len(parts))]
    found = next((tail for tail in (*tails, *other_names(noun)) if tail in vocabulary.nouns), "")
    return found or vocabulary.solid.get(noun.replace("_", ""), noun)


def _begun(noun: str, vocabulary: ServiceNouns) -> str:
    """Return the known beginning of an unknown compound, as `order` of `order_total`; else the noun itself."""
    parts = () if noun in vocabulary.nouns else tuple(noun.split("_"))
    heads = (join(parts[:at]) for at in range(len(parts) - 1, 0, -1))
    return next((head for head in heads if head in vocabulary.resources), noun)


def _owned(field: PlanField, resource: PathResource, vocabulary: ServiceNouns, also: list[str]) -> PlanField:
    """Let an input without a noun of its own belong to any noun of the path."""
    if field.name in dict(resource.owners):
        return field
    readings = list(field.readings)
    for noun in dict.fromkeys((*reversed(resource.nouns), _known(resource.noun, vocabulary), *also)):
        readings += vocabulary.read_name(field.stems, [noun], field.facts)
    for role, attribute in field.roles:
        readings += [NounReading(noun, attribute) for noun in vocabulary.roles.get(role, ()) if attribute != "id"]
    return replace(field, readings=tuple(dict.fromkeys(readings)))


def _table(field: PlanField, outputs: tuple[PlanField, ...], noun: str, vocabulary: ServiceNouns) -> WantedTable:
    named = vocabulary.row_noun(field.path)
    nouns = [noun] if named is None else [_known(named, vocabulary)]
    is_own = named is not None and nouns[0] not in vocabulary.nouns
    if is_own:
        nouns.append(noun)
    columns = [one for one in outputs if one.rows == field.path and not (one.inner and one.item is None)]
    doubt = ""
    if is_own and not f"_{noun}".endswith(f"_{named}"):
        doubt = f"Nothing here is called `{'.'.join(field.path)}`; are they the {plural(noun)}?"
    return WantedTable(field.path, tuple(dict.fromkeys(nouns)), tuple(columns), doubt)


def _said(
    resource: PathResource, givens: tuple[PlanField, ...], outputs: tuple[PlanField, ...], vocabulary: ServiceNouns
) -> frozenset[str]:
    found: set[str] = set()
    for segment in resource.literals:
        for phrase in (segment.stems, *segment.phrases):
            found |= {join(phrase), noun_of(phrase)}
            end = vocabulary.prefix(phrase)
            if end:
                found.add(join(phrase[:end]))
            found.add(_known(join(phrase), vocabulary))
    for field in givens:
        found |= _named(field.name, vocabulary)
    for field in outputs:
        names = [name for name in field.path if name != ITEM]
        for name in names[:-1] if "id" in stems(names[-1]) and not field.inner else names:
            found |= _named(name, vocabulary)
    found |= {noun for _, noun in resource.owners if noun}
    return frozenset(found | {other for term in found for other in other_names(term)})


def _named(name: str, vocabulary: ServiceNouns) -> set[str]:
    """Return the nouns that a name says, not those that it only belongs to."""
    parts = stems(name)
    found = {reading.noun for reading in vocabulary.read_name(parts, [], Facts())} | ({noun_of(parts)} - WRAPPERS)
    return found | {role for noun in found if (role := vocabulary.is_role(noun))}


def _longest_known(phrase: tuple[str, ...], at: int, vocabulary: ServiceNouns) -> tuple[str, int]:
    """Return the longest term of the service that begins at a word, and the place behind it; else the next place."""
    for end in range(len(phrase), at, -1):
        parts = phrase[at:end]
        terms = [join(parts), noun_of(parts)]
        for term in (*terms, *(other for one in terms for other in other_names(one))):
            if vocabulary.knows(term) and (len(phrase) == len(parts) or term not in COLLECTIVE):
                return term, end
    return "", at + 1


def _path_terms(
    resource: PathResource, givens: tuple[PlanField, ...], vocabulary: ServiceNouns
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split the words of the path into those that the service knows and others."""
    must: list[str] = []
    unknown: list[str] = []
    attributes = {word for field in givens for word in field.stems}
    for phrase in (phrase for segment in resource.literals for phrase in segment.phrases):
        at = 0
        while at < len(phrase):
            known, at = _longest_known(phrase, at, vocabulary)
            if known:
                must.append(known)
            elif phrase[at - 1] not in attributes | COLLECTIVE:
                unknown.append(phrase[at - 1])
    return tuple(dict.fromkeys(must)), tuple(dict.fromkeys(unknown))


class Decision(NamedTuple):
    """Something that was decided, and might have been meant otherwise."""

    about: str  # what is decided: the same decision in two places counts once
    quality: float
    cost: float = 0.0
    doubt: str = ""  # what is open, and what would settle it; empty if nothing is


@dataclass(frozen=True, eq=False)
class Value:
    @property
    def calls(self) -> frozenset[PlannedCall]:
        return frozenset()

    @property
    def givens(self) -> frozenset[str]:
        return frozenset()

    @property
    def is_per_row(self) -> bool:
        return False


@dataclass(frozen=True, eq=False)
class Given(Value):
    field: PlanField

    @property
    def givens(self) -> frozenset[str]:
        return frozenset((self.field.name,))


@dataclass(frozen=True, eq=False)
class Fixed(Value):
    value: Any


@dataclass(frozen=True, eq=False)
class RowValue(Value):
    """A column of the row for which a call is made."""

    field: PlanField

    is_per_row = True


@dataclass(frozen=True, eq=False)
class KeyMatch:
    """A condition on rows: a column compared with a value."""

    column: PlanField
    value: Value
    op: str = "eq"


@dataclass(frozen=True, eq=False)
class Pick:
    matches: tuple[KeyMatch, ...] = ()
    is_first: bool = False  # True for the first of several; else there must be one


@dataclass(frozen=True, eq=False)
class CallResult(Value):
    call: PlannedCall
    field: PlanField
    pick: Pick | None = None  # how one value of a list is chosen; None for a single value, or for all of them

    @cached_property
    def calls(self) -> frozenset[PlannedCall]:
        return self.call.before.union((self.call,), *(match.value.calls for match in matches_of(self)))

    @cached_property
    def givens(self) -> frozenset[str]:
        return self.call.givens.union(*(match.value.givens for match in matches_of(self)))

    @property
    def is_per_row(self) -> bool:
        return self.call.is_per_row or any(match.value.is_per_row for match in matches_of(self))


def matches_of(value: Value) -> tuple[KeyMatch, ...]:
    """Return the conditions by which a value is picked from a list."""
    return value.pick.matches if isinstance(value, CallResult) and value.pick is not None else ()


@dataclass(frozen=True, eq=False)
class PlannedCall:
    """An operation with the values of its inputs. Equal calls of one plan are one object."""

    number: int  # order of creation: sets of calls are sorted by it, since nothing may depend on the hash seed
    operation: PlanOperation
    bindings: tuple[tuple[PlanField, Value], ...]

    @cached_property
    def before(self) -> frozenset[PlannedCall]:
        return frozenset[PlannedCall]().union(*(value.calls for _, value in self.bindings))

    @cached_property
    def givens(self) -> frozenset[str]:
        return frozenset[str]().union(*(value.givens for _, value in self.bindings))

    @cached_property
    def is_per_row(self) -> bool:
        return any(value.is_per_row for _, value in self.bindings)


def cost_of(calls: Iterable[PlannedCall], decisions: Iterable[Decision]) -> float:
    """Add up calls and decisions, in an order that does not depend on the hash seed."""
    # One for each call, more for what it changes.
    return sum(1.0 + 3.0 * call.operation.impact for call in calls) + sum(one.cost for one in sorted(decisions))


def quality_of(decisions: Iterable[Decision]) -> float:
    return prod(decision.quality for decision in sorted(decisions))


@dataclass(frozen=True, eq=False)
class Option:
    value: Value
    decisions: frozenset[Decision]

    @cached_property
    def quality(self) -> float:
        return quality_of(self.decisions)

    @cached_property
    def cost(self) -> float:
        return cost_of(self.value.calls, self.decisions)


@dataclass(frozen=True, eq=False)
class Listing:
    """How a wanted list is made: the rows of a call, filtered, sorted and cut, with a value for each column."""

    table: WantedTable
    call: PlannedCall
    rows: OutputRows
    columns: tuple[tuple[PlanField, Value], ...]
    filters: tuple[KeyMatch, ...] = ()
    sort: PlanField | str | None = None  # an input that names columns, or such a name
    limit: PlanField | None = None
    decisions: frozenset[Decision] = frozenset()
    weakest: float = 1.0  # likeness of the column that fits least

    @cached_property
    def givens(self) -> frozenset[str]:
        ordering = {one.name for one in (self.sort, self.limit) if isinstance(one, PlanField)}
        return self.call.givens.union(ordering, *(value.givens for value in self.values))

    @cached_property
    def calls(self) -> frozenset[PlannedCall]:
        return self.call.before.union((self.call,), *(value.calls for value in self.values))

    @cached_property
    def values(self) -> tuple[Value, ...]:
        return (*(value for _, value in self.columns), *(one.value for one in self.filters))


@dataclass(frozen=True, eq=False)
class Draft:
    singles: tuple[tuple[PlanField, Value], ...] = ()
    listings: tuple[Listing, ...] = ()
    deed: PlannedCall | None = None  # the call that changes something
    decisions: frozenset[Decision] = frozenset()
    weakest: float = 1.0

    @property
    def outputs(self) -> list[tuple[PlanField, Value]]:
        return [*self.singles, *(column for listing in self.listings for column in listing.columns)]

    @cached_property
    def calls(self) -> tuple[PlannedCall, ...]:
        """Calls in an order in which each comes after those that it needs."""
        found: set[PlannedCall] = set()
        for _, value in self.singles:
            found |= value.calls
        for listing in self.listings:
            found |= listing.calls
        if self.deed is not None:
            found |= self.deed.before | {self.deed}
        return tuple(sorted(found, key=lambda call: (len(call.before), call.number)))

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """Every value but those by which others are picked."""
        singles, bindings = self.singles, (binding for call in self.calls for binding in call.bindings)
        listed = (value for listing in self.listings for value in listing.values)
        return (*(value for _, value in singles), *listed, *(value for _, value in bindings))

    @cached_property
    def givens(self) -> frozenset[str]:
        found = self.deed.givens if self.deed is not None else frozenset[str]()
        found = found.union(*(value.givens for _, value in self.singles if value.calls))
        return found.union(*(listing.givens for listing in self.listings))

    @cached_property
    def quality(self) -> float:
        """Product of the decisions and of the weakest field: ten fields of one call are one decision."""
        return quality_of(self.decisions) * self.weakest

    @cached_property
    def cost(self) -> float:
        return cost_of(self.calls, self.decisions)

    def judged(self, *decisions: Decision) -> Draft:
        return replace(self, decisions=self.decisions.union(decisions))
