"""Operations: endpoints as a planner sees them, with fields that have a meaning, and the index of a service."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from typing import Final

from bespeak.contract.endpoint import IMPACTS, Endpoint
from bespeak.contract.recipe import Paging
from bespeak.extensions.negotiation.planner.slot import ITEM, MISSING, Facts, Slot, fit, slots_of
from bespeak.extensions.negotiation.planner.vocabulary import (
    GENERIC,
    KEYS,
    SEARCHES,
    TEXTS,
    WRAPPERS,
    ComparedName,
    NounReading,
    PathResource,
    ServiceNouns,
    comparison,
    noun_of,
    resource_of,
)
from bespeak.text.language.names import CURSORS, LIMITS, OFFSETS, PAGES, join, other_names, plural, stems, words
from bespeak.text.language.sentence import word_set

_SYNONYM: Final = 0.85
NUMBERS: Final = ("integer", "number")


@dataclass(frozen=True, eq=False)
class PlanField:
    """A value that an endpoint takes or yields, or that a proposal gives or wants."""

    path: tuple[str, ...]
    readings: tuple[NounReading, ...]
    facts: Facts
    required: bool = False
    item: Facts | None = None  # elements of a list
    inner: tuple[PlanField, ...] = ()  # members of a container
    is_in_path: bool = False  # True for a path parameter
    is_wanted: bool = False  # True for a field of a proposed output, for which no role or other field will do

    @property
    def name(self) -> str:
        return self.path[-1]

    @cached_property
    def stems(self) -> tuple[str, ...]:
        return stems(self.name)

    @cached_property
    def term(self) -> str:
        return join(self.stems)

    @cached_property
    def meanings(self) -> frozenset[NounReading]:
        return frozenset(self.readings)

    @cached_property
    def attributes(self) -> frozenset[str]:
        return frozenset(name for one in self.readings for name in (one.attribute, *other_names(one.attribute)))

    @cached_property
    def comparison(self) -> ComparedName | None:
        return comparison(self.stems, is_time=self.facts.format in ("date", "date-time"))

    @cached_property
    def text(self) -> str:
        """Path for people: `orders[].total`."""
        return ".".join(self.path).replace(f".{ITEM}", ITEM)

    @cached_property
    def dotted(self) -> str:
        return ".".join(name for name in self.path if name not in ("", ITEM))

    @cached_property
    def lists(self) -> int:
        return self.path.count(ITEM)

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """Path of the innermost list above the field."""
        return self.path[: len(self.path) - 1 - self.path[::-1].index(ITEM)] if ITEM in self.path else ()

    @cached_property
    def column(self) -> str:
        """Path inside an element of that list."""
        return ".".join(self.path[len(self.rows) + 1 :]) if self.lists else self.dotted

    @cached_property
    def is_next(self) -> bool:
        """True for what leads to the next page of a list: a cursor or a link."""
        return self.term in NEXT or (self.stems[:1] == ("next",) and self.stems[-1] in ("link", "uri", "url", "href"))

    @cached_property
    def is_one_of_ids(self) -> bool:
        """True for a member of `ids{...}`: a key of its own, beside others."""
        return bool(self.path[-2:-1]) and stems(self.path[-2]) == ("id",)

    @cached_property
    def identifies(self) -> frozenset[str]:
        return frozenset(reading.noun for reading in self.readings if reading.attribute == "id")

    @cached_property
    def is_id(self) -> bool:
        return bool(self.identifies) and (self.is_in_path or self.stems[-1:] == ("id",))

    @cached_property
    def is_uuid(self) -> bool:
        """True for a UUID. A thing that has an id besides it has two keys, and one is not the other."""
        return self.facts.format == "uuid" or not {"uuid", "guid"}.isdisjoint(words(self.name))

    @cached_property
    def roles(self) -> list[NounReading]:
        """Readings, and those of a name by its parts: `author_name` may be the name of an author."""
        parts = [(*stems(one.attribute),) for one in self.readings]
        cuts = ((join(words[:at]), join(words[at:])) for words in parts for at in range(1, len(words)))
        return list(dict.fromkeys((*self.readings, *(NounReading(*cut) for cut in cuts))))

    @cached_property
    def tells(self) -> frozenset[str]:
        """Nouns of which it tells one from the others, by id or otherwise."""
        return self.identifies.union(reading.noun for reading in self.readings if reading.attribute in KEYS)

    @cached_property
    def texts(self) -> frozenset[str]:
        return frozenset(reading.noun for reading in self.readings if reading.attribute in TEXTS)

    @cached_property
    def nouns(self) -> frozenset[str]:
        return frozenset(reading.noun for reading in self.readings)


def likeness(need: PlanField, have: PlanField, vocabulary: ServiceNouns) -> float:
    """Judge whether two fields mean the same, by noun and attribute: 0 if not, 1 if they are read alike."""
    if need.is_wanted and have.is_one_of_ids and need.name != have.name:
        return 0.0  # any of them is a key to send, but none is another
    if not need.meanings.isdisjoint(have.meanings):
        alike = need.is_uuid == have.is_uuid or not need.identifies & have.identifies or _is_open(need, have)
        return 1.0 if alike else _SYNONYM
    if need.attributes.isdisjoint(have.attributes):
        return 0.0
    best = 0.0
    for noun, attribute in need.readings:
        for other, other_attribute in have.readings:
            if attribute == other_attribute and noun and other:
                role = vocabulary.is_role(noun) == other or vocabulary.is_role(other) == noun
                if (role and not need.is_wanted) or (attribute != "id" and other in other_names(noun)):
                    best = max(best, 0.85)
            elif noun == other and other_attribute in other_names(attribute):
                best = max(best, _SYNONYM)
    return best


def _is_open(need: PlanField, have: PlanField) -> bool:
    """Return True if one is a UUID by its format alone, and the other a text of any form."""
    one, other = (need, have) if need.is_uuid else (have, need)
    return {"uuid", "guid"}.isdisjoint(words(one.name)) and other.facts.kind == "string" and not other.facts.format


def alternatives(field: PlanField, vocabulary: ServiceNouns) -> list[NounReading]:
    """Return the readings under which providers of a field are found, likelier ones first."""
    found = list(field.readings)
    for noun, attribute in field.readings:
        role = vocabulary.is_role(noun)
        found += [NounReading(role, attribute)] if role else []
        if attribute != "id":
            found += [NounReading(noun, other) for other in other_names(attribute)]
            found += [NounReading(other, attribute) for other in other_names(noun)]
    return list(dict.fromkeys(found))


NEXT: Final = word_set(
    "after continuation continuation_token cursor end_cursor next next_cursor next_page next_page_cursor "
    "next_page_token next_token"
)
PLACES: Final = word_set("before ending_before from offset page page_number skip start start_at start_index")
"""Inputs that choose a page by its place."""
_PLACES_OF_ELEMENTS: Final = OFFSETS | {"start", "start_at"}
MORE: Final = word_set("has_more has_next_page more")  # outputs that say whether a further page exists
SORTS: Final = word_set("order order_by ordering sort sort_by")
TIMES: Final = word_set("date date-time time")  # formats of times; `from` of such a format is a bound, not a place
_SECOND_IDS: Final = word_set("guid uid uuid")
STATES: Final = word_set("state status")


@dataclass(frozen=True, eq=False)
class OutputRows:
    path: tuple[str, ...]
    nouns: tuple[str, ...]  # nouns that each element may be
    fields: tuple[PlanField, ...]  # fields of an element, without those of lists in it

    @cached_property
    def dotted(self) -> str:
        return ".".join(name for name in self.path if name not in ("", ITEM))

    @cached_property
    def text(self) -> str:
        """Name for people."""
        return self.dotted or f"{plural(self.nouns[0])}".replace("_", " ")

    @cached_property
    def keys(self) -> list[PlanField]:
        """Columns that tell one element from the others, those of the element itself before those inside it."""
        return sorted((field for field in self.fields if field.tells & set(self.nouns)), key=lambda one: len(one.path))

    def is_of_another(self, column: PlanField, value: PlanField) -> bool:
        """Return True if a value has the name, or the type, of another column than that it would be compared with."""
        if value.facts.kind != column.facts.kind and column.is_id:
            # Orders with an `id` and an `external_order_id`: the one of the type of the value is meant.
            ends = {(*noun.split("_"), "id") for noun in self.nouns}
            alike = (one for one in self.fields if one.facts.kind == value.facts.kind and one is not column)
            return any(one.stems[-len(end) :] == end for one in alike for end in ends)
        names = {one.term for one in self.fields if one.identifies}
        return value.term != column.term and len(value.stems) > 1 and value.term in names

    @cached_property
    def ids(self) -> list[PlanField]:
        return [field for field in self.keys if field.identifies & set(self.nouns)]

    @cached_property
    def is_restricted(self) -> bool:
        return any(field.name.lower() in STATES and field.facts.constant is not MISSING for field in self.fields)


@dataclass(frozen=True, eq=False)
class PlanOperation:
    number: int
    endpoint: Endpoint
    resource: PathResource
    inputs: tuple[PlanField, ...]
    outputs: tuple[PlanField, ...]
    lists: tuple[OutputRows, ...]

    @cached_property
    def impact(self) -> int:
        """Rank of the impact; an unknown one is the worst."""
        impact = self.endpoint.semantic.impact
        return IMPACTS.index(impact) if impact in IMPACTS else len(IMPACTS) - 1

    def nouns_of(self, field: PlanField) -> tuple[str, ...]:
        """Return the nouns of the thing that an output field belongs to: a row, or the resource."""
        rows = next((rows for rows in self.lists if rows.path == field.rows), None)
        return (self.resource.noun,) if rows is None else rows.nouns

    @cached_property
    def attributes(self) -> frozenset[str]:
        return frozenset(reading.attribute for field in self.outputs for reading in field.readings)

    @cached_property
    def required(self) -> tuple[PlanField, ...]:
        return tuple(field for field in self.inputs if field.required)

    @cached_property
    def identified(self) -> frozenset[str]:
        """Nouns whose ids it yields."""
        return frozenset[str]().union(*(field.identifies for field in self.outputs))

    @cached_property
    def asked_for(self) -> frozenset[NounReading]:
        """What its required inputs may mean."""
        return frozenset[NounReading]().union(*(field.meanings for field in self.required))

    @cached_property
    def pages(self) -> Paging | None:
        """How all pages are read: by a cursor, or by counting; None if there is one page, or no way to the next."""
        if not self.lists:
            return None
        items = self.lists[0].dotted
        ahead = [field for field in self.outputs if not field.lists and field.is_next and not field.inner]
        takes = [field for field in self.inputs if field.term in CURSORS | {"page", "offset"}]
        for field in takes:
            for cursor in ahead:
                named = field.term in CURSORS or cursor.term == f"next_{field.term}"
                is_link = cursor.facts.format in ("uri", "url")
                if named and not is_link and fit(field.facts, cursor.facts):
                    return Paging(parameter=field.name, cursor=cursor.dotted, items=items)
        more = next((one.dotted for one in self.outputs if not one.lists and one.term in MORE), "")
        for field in self.inputs:
            counts = "pages" if field.term in PAGES else "elements" if field.term in _PLACES_OF_ELEMENTS else ""
            first = {field.facts.least, field.facts.default if field.facts.default is not MISSING else None}
            if counts == "elements" and 1 in first:
                continue  # it counts from one, and would show the last element of a page twice
            if counts and field.facts.kind in NUMBERS:
                return Paging(parameter=field.name, cursor=more, counts=counts, items=items)
        return None

    @cached_property
    def is_partial(self) -> bool:
        """True if a call yields some of the rows, and nothing says how to get the others."""
        if self.pages is not None or not self.lists:
            return False
        if any(field.is_next or field.term in MORE for field in self.outputs if not field.lists):
            return True
        most = (field for field in self.inputs if field.term in LIMITS)
        return bool(self.places) or any(field.required or field.facts.default is not MISSING for field in most)

    @cached_property
    def places(self) -> frozenset[str]:
        """Names of the inputs that choose a page. A time is a bound, and so is a `from` beside a `to`."""
        terms = {field.term for field in self.inputs}
        bounds = {"from"} if "to" in terms else set()
        found = (field for field in self.inputs if field.term in (PLACES | CURSORS) - bounds)
        return frozenset(field.name for field in found if field.facts.format not in TIMES)


def make_operation(
    number: int, endpoint: Endpoint, inputs: Sequence[Slot], outputs: Sequence[Slot], vocabulary: ServiceNouns
) -> PlanOperation:
    resource = resource_of(endpoint.path, vocabulary.things)
    reads = endpoint.semantic.impact == IMPACTS[0]
    yields = _with_ids(read_outputs(outputs, resource, vocabulary, is_listing=reads))
    lists = []
    for field in yields:
        if field.item is not None and field.inner:
            within = [one for one in yields if one.rows == field.path]
            noun = vocabulary.row_noun(field.path)
            own = resource.noun if noun is None else noun
            nouns = dict.fromkeys([own, *vocabulary.row_nouns(field.item.names)])
            lists.append(OutputRows(field.path, tuple(nouns), tuple(within)))
    takes = read_inputs(inputs, resource, vocabulary)
    if not lists:
        yields = _of_key(yields, takes, resource)
    return PlanOperation(number, endpoint, resource, takes, yields, tuple(lists))


def _of_key(
    yields: tuple[PlanField, ...], takes: tuple[PlanField, ...], resource: PathResource
) -> tuple[PlanField, ...]:
    """Let what is looked up by the id of another thing be its attribute: the salary of `/salaries/{employee_id}`."""
    keys = [field for field in takes if field.required]
    nouns = keys[0].identifies - {resource.noun} if len(keys) == 1 else frozenset[str]()
    if len(nouns) != 1 or keys[0].stems[-1:] != ("id",):
        return yields
    own = NounReading(min(nouns), resource.noun)
    return tuple(
        replace(field, readings=(*field.readings, own)) if field.term == resource.noun and not field.inner else field
        for field in yields
    )


def read_inputs(
    slots: Sequence[Slot], resource: PathResource, vocabulary: ServiceNouns, *, is_proposed: bool = False
) -> tuple[PlanField, ...]:
    """Make the fields of an input; members of objects are not taken apart."""
    owners = dict(resource.owners)
    found: dict[str, PlanField] = {}
    for at, slot in enumerate(slots):
        if len(slot.path) > 1:
            continue
        name = slot.path[0]
        base = [""] if name in owners else [resource.noun]
        readings = tuple(one for one in vocabulary.read(slot.path, base, slot.facts) if one != ("", "id"))
        if owners.get(name):
            readings = _parameter_readings(name, owners[name], readings, vocabulary, is_proposed)
        # The thing that a path names has no default.
        required = name in owners or (slot.required and slot.facts.default is MISSING)
        found[name] = PlanField(
            slot.path, readings, slot.facts, required, slot.item, _inner(at, slots), is_in_path=name in owners
        )
    return tuple(found.values())


def _parameter_readings(
    name: str, noun: str, readings: tuple[NounReading, ...], vocabulary: ServiceNouns, is_proposed: bool
) -> tuple[NounReading, ...]:
    """Read an endpoint's path parameter by the segment before it: `{id}`, `{order}`, `{order_id}` after `/orders`."""
    parts = stems(name)
    if not parts:
        return readings
    parts = parts[: parts.index("or")] if "or" in parts[1:] else parts  # `team_id_or_slug`
    own = noun_of(tuple(part for part in parts if part not in ("id", "identifier", "identity")))
    is_key = parts[-1] == "id" or parts[-1] not in KEYS | GENERIC | SEARCHES
    words, others = set(own.split("_")), set(noun.split("_"))
    akin = not own or words <= others or noun.startswith(own)  # `{org_id}` after `/orgunits`
    elsewhere = own in vocabulary.things and own in vocabulary.segments and own != noun
    same = NounReading(noun, join(parts))
    if is_key and not elsewhere and (akin or not is_proposed):
        found = (NounReading(noun, "id"), same, *(one for one in readings if own and one.attribute == "id"))
    elif is_key:
        found = (*readings, same)
    else:
        found = (*vocabulary.read_name(parts, [noun], Facts()), *readings)
    return tuple(dict.fromkeys(one for one in found if one is not same or own not in ("", noun)))


def read_outputs(
    slots: Sequence[Slot], resource: PathResource, vocabulary: ServiceNouns, *, is_listing: bool
) -> tuple[PlanField, ...]:
    """Make the fields of an output, containers included. Beside a list, single values are about all of it."""
    paths = {slot.path for slot in slots}
    terms = {(slot.path[:-1], join(stems(slot.path[-1]))) for slot in slots}
    by_list = {slot.path: slot for slot in slots if slot.item is not None and slot.is_container}
    named = {path: vocabulary.row_noun(path) for path in by_list if _is_wrapped(path)}
    outer = [path for path, noun in named.items() if noun in (None, resource.noun)]  # lists of links are beside
    listed = is_listing and resource.is_collection and bool(outer)
    objects = [slot.path for slot in slots if slot.is_container and slot.item is None]
    entries = {path[:-1] for path in objects if path[-2:-1] == (ITEM,) and noun_of(stems(path[-1])) == resource.noun}
    found = []
    for place, slot in enumerate(slots):
        bases = [resource.noun]
        around = next((by_list[slot.path[:at]] for at, name in enumerate(slot.path) if name == ITEM), None)
        if around is not None and around.item is not None:
            bases += vocabulary.row_nouns(around.item.names)
            if slot.path[:-1] in entries and stems(slot.path[-1]) == ("id",):  # beside `movie{...}`: not the movie's
                bases = [f"{resource.noun} entry"]
        elif listed and _is_wrapped(slot.path):
            is_id = stems(slot.path[-1]) == ("id",)
            bases = [resource.parent] if is_id else [f"{resource.noun} list"]
        readings = vocabulary.read(slot.path, list(dict.fromkeys(bases)), slot.facts)
        name = slot.path[-1].lower()
        parts = stems(slot.path[-1])
        if parts[-1:] == ("id",) and join(parts[:-1]) == resource.noun and (slot.path[:-1], "id") in terms:
            # Beside its own id, that of a group is the group that it belongs to.
            readings = (NounReading(resource.noun, join(parts)),)
        elif (slot.path[:-1], join((*parts, "id"))) in terms:  # beside the id of a location, `location` is its name
            readings = tuple(one for one in readings if one.attribute != "id")
        if name in _SECOND_IDS:  # beside an id it is another key
            own = tuple(NounReading(noun, name) for noun, _ in readings)
            readings = own if (*slot.path[:-1], "id") in paths else (*readings, *own)
        found.append(PlanField(slot.path, readings, slot.facts, slot.required, slot.item, _inner(place, slots)))
    return tuple(found)


def _with_ids(fields: tuple[PlanField, ...]) -> tuple[PlanField, ...]:
    """Read the first member of each type in `ids{...}` as the id of what is around it; any of them is a key."""
    found: dict[tuple[tuple[str, ...], str], PlanField] = {}
    for field in fields:
        if field.is_one_of_ids:
            found.setdefault((field.path[:-1], field.facts.kind), field)
    firsts = set(found.values())
    return tuple(
        replace(field, readings=(*field.readings, *(NounReading(noun, "id") for noun, _ in field.readings)))
        if field in firsts
        else field
        for field in fields
    )


def _is_wrapped(path: tuple[str, ...]) -> bool:
    """Return True if a field is at the root, or in containers that say nothing."""
    return all(noun_of(stems(name)) in WRAPPERS for name in path[:-1])


def _inner(at: int, slots: Sequence[Slot]) -> tuple[PlanField, ...]:
    """Return the members of a container, which follow it, with paths inside it."""
    slot = slots[at]
    if not slot.is_container:
        return ()
    start = (*slot.path, ITEM) if slot.item is not None else slot.path
    within = takewhile(lambda one: one.path[: len(start)] == start, slots[at + 1 :])
    return tuple(PlanField(one.path[len(start) :], (), one.facts, one.required, one.item) for one in within)


_FIELDS: Final = 160
_LEVELS: Final = 5  # most fields and levels of an output that are looked at

Usable = Callable[[Endpoint], bool]


class OperationIndex:
    """Everything about the endpoints of a service that does not depend on a proposal. It never changes."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        rough = []
        for endpoint in sorted(endpoints, key=lambda one: one.key):
            takes = slots_of(endpoint.input_schema, most=_FIELDS, levels=_LEVELS)
            yields = slots_of(endpoint.output_schema, most=_FIELDS, levels=_LEVELS)
            rough.append((endpoint, takes, yields))
        self.vocabulary = ServiceNouns((endpoint.path, takes, yields) for endpoint, takes, yields in rough)
        self.operations = tuple(
            make_operation(number, endpoint, takes, yields, self.vocabulary)
            for number, (endpoint, takes, yields) in enumerate(rough)
        )
        self.yielding: dict[NounReading, list[tuple[PlanOperation, PlanField]]] = {}  # with the field
        self.listing: dict[str, list[tuple[PlanOperation, OutputRows]]] = {}  # by the noun of their rows
        self.near: dict[str, list[PlanOperation]] = {}  # by any attribute that they yield
        for operation in self.operations:
            for field in operation.outputs:
                for reading in field.readings:
                    for noun in {reading.noun, self.vocabulary.is_role(reading.noun) or reading.noun}:
                        known = self.yielding.setdefault(NounReading(noun, reading.attribute), [])
                        known.append((operation, field))
            for attribute in operation.attributes if not operation.impact else ():
                self.near.setdefault(attribute, []).append(operation)
            for rows in operation.lists:
                for noun in rows.nouns:
                    self.listing.setdefault(noun, []).append((operation, rows))
        self.roles = self._find_roles()  # operations that look up what a role such as `manager` may be

        self.vocabulary.roles = {
            role: [one.resource.noun for one in operations] for role, operations in self.roles.items()
        }

    def _find_roles(self) -> dict[str, list[PlanOperation]]:
        """Find roles: nouns that are only known by keys that refer to them, such as `manager_id` of an employee."""
        single = [
            one
            for one in self.operations
            if not (one.impact or one.lists)
            and len(one.required) == 1
            and one.required[0].identifies == {one.resource.noun}
        ]
        known = {one.resource.noun for one in self.operations} | set(self.listing)
        found: dict[str, dict[int, PlanOperation]] = {}
        for operation in self.operations:
            keys = [field for field in operation.outputs if field.stems[-1:] == ("id",) and len(field.stems) > 1]
            for field in keys:
                beside = {noun for one in keys if one.rows == field.rows for noun in one.identifies & known}
                for role in field.identifies - known:
                    if not self.vocabulary.is_role(role):
                        fits = (one for one in single if one.resource.noun not in beside)
                        found.setdefault(role, {}).update({one.number: one for one in fits})
        return {role: list(operations.values()) for role, operations in found.items()}
