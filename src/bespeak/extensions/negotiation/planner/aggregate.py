"""Aggregates: wanted values that are made of a whole list, such as a count, a sum, or those of the cheapest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from bespeak.extensions.negotiation.planner.draft import Superlative, WantedTable, Wish
from bespeak.extensions.negotiation.planner.operation import NUMBERS, OperationIndex, PlanField
from bespeak.extensions.negotiation.planner.slot import Facts
from bespeak.extensions.negotiation.planner.vocabulary import LINKS, NounReading
from bespeak.text.language import sentence
from bespeak.text.language.names import join, other_names


@cache
def _words() -> tuple[dict[str, str], dict[str, dict[str, tuple[str, ...]]]]:
    return sentence.names("reductions"), sentence.table("superlatives")


def superlative(wish: Wish, index: OperationIndex) -> Superlative | None:
    """Return the superlative of a path; None if it has none, or the service has a view of that name."""
    known = _words()[1]
    views = {one.resource.view for one in index.operations if one.resource.noun == wish.noun}
    for segment in wish.resource.literals:
        for phrase in segment.phrases:
            rows = {word: known[word] for word in phrase if word in known and word not in views}
            end = next((name for row in rows.values() for name in row if name != "by"), None)
            if end is not None:
                attributes = next(values for row in reversed(rows.values()) for values in row.values())
                return Superlative(frozenset(rows), end == "most", frozenset(attributes))
    return None


def ordered_wish(wish: Wish, index: OperationIndex) -> Wish | None:
    """Return a wish for the first by the superlative of its path, or for its lists in that order; None without one."""
    found = None if wish.is_effect else superlative(wish, index)
    if found is None:
        return None
    tables = tuple(replace(table, order=found) for table in wish.tables)
    if not tables:
        tables = (WantedTable((), (wish.noun,), wish.singles, order=found, way="first"),)
    return replace(wish, singles=wish.singles if wish.tables else (), tables=tables)


def _reduction(field: PlanField, wish: Wish) -> tuple[str, tuple[str, ...]] | None:
    """Return how a field is made of a list, and the words that say of what: `order_count`, `total_amount`."""
    if field.facts.kind not in (*NUMBERS, ""):
        return None
    ways = _words()[0]
    stems = tuple(word for word in field.stems if word not in LINKS)
    if not stems:
        return None
    if ways.get(wish.endpoint.method.lower()) == "count" and ways.get(stems[0]) in ("count", "sum"):
        return "count", stems[1:]
    for word, rest in ((stems[0], stems[1:]), (stems[-1], stems[:-1])):
        way = ways.get(word)
        if way is not None and (rest or way == "count"):
            return way, rest
    return None


def reduced_wish(wish: Wish, index: OperationIndex) -> Wish | None:
    """Return a wish for the lists that some of its fields are made of; None if none is."""
    tables: dict[tuple[str, str], list[tuple[PlanField, str, PlanField | None]]] = {}
    singles = []
    for field in () if wish.is_effect else wish.singles:
        found = _reduction(field, wish)
        made = None if found is None else next(_places(wish, index, *found), None)
        if found is None or made is None:
            singles.append(field)
        else:
            noun, doubt, column = made
            tables.setdefault((noun, doubt), []).append((field, found[0], column))
    made_of = tuple(
        WantedTable(
            (), (noun,), tuple(column for *_, column in parts if column is not None),
            doubt=doubt, way="reduce", reduced=tuple(parts),
        )
        for (noun, doubt), parts in tables.items()
    )  # fmt: skip
    return replace(wish, singles=tuple(singles), tables=(*wish.tables, *made_of)) if made_of else None


def _places(
    wish: Wish, index: OperationIndex, way: str, rest: tuple[str, ...]
) -> Iterator[tuple[str, str, PlanField | None]]:
    """Yield the nouns whose lists have what is reduced, each with a doubt and the column; those of the path first."""
    listed = index.listing
    if way == "count":
        named = [join(rest)] if rest and not wish.noun.endswith(f"_{join(rest)}") else [wish.noun]
        yield from ((noun, "", None) for noun in (*named, *other_names(named[0])) if noun in listed)
        return
    said = [noun for noun in dict.fromkeys((wish.noun, *reversed(wish.resource.nouns))) if noun in listed]
    head = join(rest[:1])
    attributes = [join(rest)]
    if head in listed and len(rest) > 1:
        said, attributes = [head, *said], [*attributes, join(rest[1:])]
    for noun in dict.fromkeys((*said, *listed)):
        doubt = f"Is it the {way} of the {join(rest)} of each {noun}? Name the {noun} in the path."
        doubt = "" if noun in said or noun in wish.said else doubt
        for attribute in attributes:
            if any(
                NounReading(noun, attribute) in field.meanings and field.facts.kind in NUMBERS and field.lists == 1
                for _, rows in listed[noun]
                for field in rows.fields
            ):
                reading = NounReading(noun, attribute)
                yield noun, doubt, PlanField((attribute,), (reading,), Facts("number"), is_wanted=True)
