"""Operations: endpoints as a planner sees them, with fields that have a meaning and lists that have rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from typing import Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.recipe import Paging
from bespeak.contract.semantic import IMPACTS
from bespeak.runtime.negotiation.planner.field import Field
from bespeak.runtime.negotiation.planner.resource import Resource, resource_of
from bespeak.runtime.negotiation.planner.slot import ITEM, MISSING, Facts, Slot, fit
from bespeak.runtime.negotiation.planner.term import GENERIC, KEYS, WRAPPERS, join, noun_of, stems
from bespeak.runtime.negotiation.planner.vocabulary import Reading, Vocabulary
from bespeak.text.language.sentence import word_set

CURSORS: Final = word_set(
    "after continuation continuation_token cursor next next_cursor next_page_token next_token page_cursor page_token "
    "starting_after token"
)
NEXT: Final = word_set(
    "after continuation continuation_token cursor end_cursor next next_cursor next_page next_page_cursor "
    "next_page_token next_token"
)
PLACES: Final = word_set("before ending_before from offset page page_number skip start start_at start_index")
"""Inputs that choose a page by its place."""
PAGES: Final = word_set("page page_number")
OFFSETS: Final = word_set("offset skip start_index")
_MORE: Final = word_set("has_more has_next_page more")
"""Outputs that say whether a further page exists."""
LIMITS: Final = word_set("count first limit max_item max_result page_limit page_size per_page size take top")
SORTS: Final = word_set("order order_by ordering sort sort_by")
TIMES: Final = word_set("date date-time time")
"""Formats of times; `from` of such a format is a bound, not a place."""
_SECOND_IDS: Final = word_set("guid uid uuid")
STATES: Final = word_set("state status")


@dataclass(frozen=True, eq=False)
class Rows:
    """A list of objects in an output."""

    path: tuple[str, ...]
    nouns: tuple[str, ...]
    """Nouns that each element may be."""
    fields: tuple[Field, ...]
    """Fields of an element, without those of lists in it."""

    @cached_property
    def dotted(self) -> str:
        """Path in the language of recipes."""
        return ".".join(name for name in self.path if name != ITEM)

    @cached_property
    def is_restricted(self) -> bool:
        """True if all rows have one and the same state."""
        return any(field.name.lower() in STATES and field.facts.constant is not MISSING for field in self.fields)


@dataclass(frozen=True, eq=False)
class Operation:
    """An endpoint that a plan may call."""

    number: int
    endpoint: Endpoint
    resource: Resource
    inputs: tuple[Field, ...]
    outputs: tuple[Field, ...]
    lists: tuple[Rows, ...]

    @cached_property
    def impact(self) -> int:
        """Rank of the impact; an unknown one is the worst."""
        impact = self.endpoint.semantic.impact
        return IMPACTS.index(impact) if impact in IMPACTS else len(IMPACTS) - 1

    @cached_property
    def is_data(self) -> bool:
        """True for the rows of a data class."""
        return self.endpoint.data_class is not None

    def nouns_of(self, field: Field) -> tuple[str, ...]:
        """Return the nouns of the thing that an output field belongs to: a row, or the resource."""
        rows = next((rows for rows in self.lists if rows.path == field.rows), None)
        return (self.resource.noun,) if rows is None else rows.nouns

    @cached_property
    def attributes(self) -> frozenset[str]:
        """Attributes that it yields, of whatever noun."""
        return frozenset(reading.attribute for field in self.outputs for reading in field.readings)

    @cached_property
    def required(self) -> tuple[Field, ...]:
        """Inputs that every call needs."""
        return tuple(field for field in self.inputs if field.required)

    @cached_property
    def is_search(self) -> bool:
        """True if it lists only what it is asked for."""
        return bool(self.lists) and self.endpoint.method == "SEARCH"

    @cached_property
    def pages(self) -> Paging | None:
        """How all pages are read; None if there is one page, or no way to the next."""
        ahead = [field for field in self.outputs if not field.lists and field.term in NEXT and not field.inner]
        takes = [field for field in self.inputs if field.term in CURSORS | {"page", "offset"}]
        for field in takes:
            for cursor in ahead:
                named = field.term in CURSORS or cursor.term == f"next_{field.term}"
                if (
                    named
                    and self.lists
                    and cursor.facts.format not in ("uri", "url")
                    and fit(field.facts, cursor.facts)
                ):
                    return Paging(parameter=field.name, cursor=cursor.dotted, items=self.lists[0].dotted)
        return self._numbered() if self.lists else None

    def _numbered(self) -> Paging | None:
        """Return how pages are read by their numbers, or by the number of elements before them."""
        for field in self.inputs:
            counts = "pages" if field.term in PAGES else "elements" if field.term in OFFSETS else ""
            if counts and field.facts.kind == "integer":
                return Paging(
                    parameter=field.name,
                    cursor=next((more.dotted for more in self.outputs if not more.lists and more.term in _MORE), ""),
                    counts=counts,
                    items=self.lists[0].dotted,
                )
        return None

    @cached_property
    def is_partial(self) -> bool:
        """True if a call yields some of the rows, and nothing says how to get the others."""
        if self.pages is not None or not self.lists:
            return False
        if any(field.term in NEXT | {"has_more"} for field in self.outputs if not field.lists):
            return True
        return any(
            (field.term in PLACES | CURSORS and field.facts.format not in TIMES)
            or (field.term in LIMITS and (field.required or field.facts.default is not MISSING))
            for field in self.inputs
        )


def make_operation(
    number: int, endpoint: Endpoint, inputs: Sequence[Slot], outputs: Sequence[Slot], vocabulary: Vocabulary
) -> Operation:
    """Read an endpoint with the vocabulary of its service."""
    resource = resource_of(endpoint.path, vocabulary.things)
    reads = endpoint.semantic.impact == IMPACTS[0]
    yields = _with_ids(read_outputs(outputs, resource, vocabulary, is_listing=reads))
    lists = []
    for field in yields:
        if field.item is not None and field.inner:
            within = [one for one in yields if one.rows == field.path]
            nouns = dict.fromkeys(_row_nouns(field, resource, vocabulary))
            lists.append(Rows(field.path, tuple(nouns), tuple(within)))
    return Operation(number, endpoint, resource, read_inputs(inputs, resource, vocabulary), yields, tuple(lists))


def read_inputs(
    slots: Sequence[Slot], resource: Resource, vocabulary: Vocabulary, *, is_proposed: bool = False
) -> tuple[Field, ...]:
    """Make the fields of an input; members of objects are not taken apart."""
    owners = dict(resource.owners)
    found: dict[str, Field] = {}
    for at, slot in enumerate(slots):
        if len(slot.path) > 1:
            continue
        name = slot.path[0]
        base = [""] if name in owners else [resource.noun]
        readings = tuple(one for one in vocabulary.read(slot.path, base, slot.facts) if one != ("", "id"))
        if owners.get(name):
            readings = _parameter_readings(name, owners[name], readings, vocabulary, is_proposed)
        required = (slot.required or name in owners) and slot.facts.default is MISSING
        found[name] = Field(slot.path, readings, slot.facts, required, slot.item, _inner(at, slots))
    return tuple(found.values())


def _parameter_readings(
    name: str, noun: str, readings: tuple[Reading, ...], vocabulary: Vocabulary, is_proposed: bool
) -> tuple[Reading, ...]:
    """Read a path parameter by the segment before it: `{id}`, `{order}` and `{order_id}` after `/orders`.

    An endpoint may call its own key what it likes; a proposal that does may mean another thing.
    """
    parts = stems(name)
    own = noun_of(tuple(part for part in parts if part not in ("id", "identifier", "identity")))
    is_key = parts[-1] == "id" or parts[-1] not in KEYS | GENERIC
    words, others = set(own.split("_")), set(noun.split("_"))
    akin = not own or words <= others
    elsewhere = own in vocabulary.things and own in vocabulary.segments and own != noun
    same = Reading(noun, join(parts))
    if is_key and not elsewhere and (akin or not is_proposed):
        found = (Reading(noun, "id"), same, *(one for one in readings if own and one.attribute == "id"))
    elif is_key:
        found = (*readings, same)
    else:
        found = (*vocabulary.read_name(parts, [noun], Facts()), *readings)
    return tuple(dict.fromkeys(one for one in found if one is not same or own not in ("", noun)))


def read_outputs(
    slots: Sequence[Slot], resource: Resource, vocabulary: Vocabulary, *, is_listing: bool
) -> tuple[Field, ...]:
    """Make the fields of an output, containers included. Beside a list, single values are about all of it."""
    paths = {slot.path for slot in slots}
    by_list = {slot.path: slot for slot in slots if slot.item is not None and slot.is_container}
    outer = [path for path in by_list if _is_wrapped(path)]
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
        if name in _SECOND_IDS:  # beside an id it is another key
            own = tuple(Reading(noun, name) for noun, _ in readings)
            readings = own if (*slot.path[:-1], "id") in paths else (*readings, *own)
        found.append(Field(slot.path, readings, slot.facts, slot.required, slot.item, _inner(place, slots)))
    return tuple(found)


def _with_ids(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """Read the first member of each type in `ids{...}` as the id of what is around it; any of them is a key."""
    found: dict[tuple[tuple[str, ...], str], Field] = {}
    for field in fields:
        if field.is_one_of_ids:
            found.setdefault((field.path[:-1], field.facts.kind), field)
    firsts = set(found.values())
    return tuple(
        replace(field, readings=(*field.readings, *(Reading(noun, "id") for noun, _ in field.readings)))
        if field in firsts
        else field
        for field in fields
    )


def _is_wrapped(path: tuple[str, ...]) -> bool:
    """Return True if a field is at the root, or in containers that say nothing."""
    return all(noun_of(stems(name)) in WRAPPERS for name in path[:-1])


def _inner(at: int, slots: Sequence[Slot]) -> tuple[Field, ...]:
    """Return the members of a container, which follow it, with paths inside it."""
    slot = slots[at]
    if not slot.is_container:
        return ()
    start = (*slot.path, ITEM) if slot.item is not None else slot.path
    within = takewhile(lambda one: one.path[: len(start)] == start, slots[at + 1 :])
    return tuple(Field(one.path[len(start) :], (), one.facts, one.required, one.item) for one in within)


def _row_nouns(field: Field, resource: Resource, vocabulary: Vocabulary) -> list[str]:
    noun = vocabulary.row_noun(field.path)
    own = [resource.noun] if noun is None else [noun]
    return own + (vocabulary.row_nouns(field.item.names) if field.item is not None else [])
