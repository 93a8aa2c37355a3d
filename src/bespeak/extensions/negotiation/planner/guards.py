"""Guards: what must be true of a plan besides its types, so that it means what the proposal means."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from bespeak.extensions.negotiation.plan import Miss
from bespeak.extensions.negotiation.planner.draft import (
    CallResult,
    Decision,
    Draft,
    Given,
    PlannedCall,
    RowValue,
    Value,
    Wish,
    matches_of,
)
from bespeak.extensions.negotiation.planner.operation import MORE, PLACES, SORTS, PlanField
from bespeak.extensions.negotiation.planner.slot import ITEM
from bespeak.extensions.negotiation.planner.vocabulary import SHARED, ServiceNouns, noun_of
from bespeak.text.language.names import CURSORS, LIMITS, join, other_names, stems
from bespeak.text.language.sentence import listed, word_set

_UNSAID: Final = 0.6
_LINK: Final = 0.85
_QUALIFIED: Final = 0.6
_EMBEDDED: Final = 0.5
_NEAR: Final = word_set("around close closest near nearby nearest")  # a distance, which no comparison is
_ASIDE: Final = LIMITS | SORTS | PLACES | CURSORS  # inputs that say how much of a list is wanted, and not of what
_PROJECTING: Final = word_set("attribute column exclude expand field include opt_field projection select")
"""Inputs that choose what an answer contains."""


def judge(draft: Draft, wish: Wish, vocabulary: ServiceNouns) -> Draft | Miss:
    """Return a draft with what is doubtful about it, or why it is not what the proposal means."""
    for field in wish.givens:
        if field.required and field.name not in draft.givens:
            return Miss(field=field.name, reason=f"No endpoint makes use of the input `{field.name}` for this.")
    literal = _literals(draft)
    covered = literal | _inputs(draft, wish, vocabulary)
    solid = [{term.replace("_", "") for term in terms} for terms in (literal, covered)]
    for term in wish.must:
        names = {name.replace("_", "") for name in (term, *other_names(term))}
        if names.isdisjoint(solid[0] if term in wish.below else solid[1]):
            return Miss(field=wish.endpoint.path, reason=f"Nothing that yields these fields deals with `{term}`.")
    miss = _anchoring(draft, wish)
    if miss is not None:
        return miss
    doubts = [
        *_unused_options(draft, wish),
        *_parts(draft, wish),
        *_unknown_words(draft, wish),
        *_unsaid(draft, wish, vocabulary),
        *_embedded(draft, wish),
        *_restricted(draft, wish),
        *_coherence(draft, wish),
        *_detours(draft, wish),
        *_projections(draft),
        *_effects(draft),
    ]
    return draft.judged(*doubts)


def _unused_options(draft: Draft, wish: Wish) -> Iterator[Decision]:
    for field in wish.givens:
        if not field.required and field.name not in draft.givens:
            doubt = f"The optional input `{field.name}` would have no effect; leave it out."
            yield Decision(f"unused {field.name}", 0.6, 0.5, doubt)


def _literals(draft: Draft) -> set[str]:
    """Return the words that a plan deals with by paths, lists and columns."""
    found: set[str] = set()
    for call in draft.calls:
        for segment in call.operation.resource.literals:
            found |= {segment.term, noun_of(segment.stems)}
        for _, value in call.bindings:
            if isinstance(value, CallResult | RowValue):
                found |= value.field.identifies
    for listing in draft.listings:
        found |= {*listing.rows.nouns}
        if listing.table.order is not None:
            found |= listing.table.order.words
    for field, value in draft.outputs:
        if isinstance(value, CallResult | RowValue) and not value.field.identifies:
            found |= _words(value.field) & _words(field)
    for _, value in draft.singles:
        if isinstance(value, CallResult) and value.pick is None:
            found |= {noun_of(stems(name)) for name in value.field.path[:-1]}
    return found


def _inputs(draft: Draft, wish: Wish, vocabulary: ServiceNouns) -> set[str]:
    """Return the words that a plan deals with by what it sends and compares."""
    found: set[str] = set()
    sent = [field for call in draft.calls for field, _ in call.bindings]
    sent += [one.column for listing in draft.listings for one in listing.filters]
    for field in sent:
        found |= {*_parts_of(field), *field.nouns} - {"id"}  # any key is an id: ids in a path must be given
    for field in wish.givens:
        if field.name in draft.givens:
            found |= _parts_of(field)
            found |= {reading.noun for reading in vocabulary.read_name(field.stems, [], field.facts)}
    return found


def _parts_of(field: PlanField) -> set[str]:
    """Return what a name begins with, and its last word: `updateDraftIfNeeded` says nothing about a draft."""
    return {join(field.stems[:end]) for end in range(1, len(field.stems) + 1)} | {*field.stems[-1:]}


def _words(field: PlanField) -> set[str]:
    return {word for name in field.path if name != ITEM for word in stems(name)}


def _unknown_words(draft: Draft, wish: Wish) -> Iterator[Decision]:
    """Doubt a word that the service does not know, unless an input gives it a meaning."""
    keys = dict(wish.resource.owners)
    filters = [one.value for listing in draft.listings for one in listing.filters]
    local = any(isinstance(one, Given) and not one.field.identifies and one.field.name not in keys for one in filters)
    used = {word for value in _values(draft) if isinstance(value, CallResult) for word in _words(value.field)}
    used |= {word for field in wish.wanted for word in _words(field)}
    used |= {word for call in draft.calls for segment in call.operation.resource.literals for word in segment.stems}
    used = used.union(
        listed("overviews"), *(listing.table.order.words for listing in draft.listings if listing.table.order)
    )
    for word in wish.unknown:
        if word not in _NEAR and not wish.said.isdisjoint(other_names(word)):
            continue
        if word in _NEAR or (not local and word not in used):
            doubt = f"Nothing here knows what `{word}` in the path means; say it by an input, or leave it out."
            yield Decision(f"unknown {word}", _QUALIFIED, 0.0, doubt)


def _parts(draft: Draft, wish: Wish) -> Iterator[Decision]:
    """Doubt a field of the noun that is not said to be of its part: `/users/{id}/manager` may be another user."""
    words = set(wish.part.split("_")) if wish.part else set()
    said = [
        _words(field) | (_words(one.field) if isinstance(one, CallResult) else set()) for field, one in draft.outputs
    ]
    if words and any(map(words.isdisjoint, said)):
        doubt = f"Is what the {wish.noun} itself has what `{wish.part}` in the path means?"
        yield Decision("part", _QUALIFIED, 0.0, doubt)


def _unsaid(draft: Draft, wish: Wish, vocabulary: ServiceNouns) -> Iterator[Decision]:
    """Doubt a step whose path has a segment that the proposal nowhere mentions."""
    for call in draft.calls:
        operation = call.operation
        asked = any(listing.call is call and listing.table.doubt for listing in draft.listings)
        if asked or any(_is_role(one, operation.number) for one in draft.decisions):
            continue
        if _is_link(call, draft, wish):
            yield Decision(f"link {operation.number}", _LINK)
            continue
        for segment in operation.resource.literals:
            terms = {segment.term, noun_of(segment.stems)} if operation.endpoint.data_class else {segment.term}
            if terms.isdisjoint(wish.said) and not vocabulary.is_silent(segment, operation.resource):
                doubt = f"`{operation.endpoint}` is about `{segment.text}`, which the proposal does not mention."
                yield Decision(f"unsaid {segment.term}", _UNSAID, 0.0, doubt)
                break


def _is_role(decision: Decision, number: int) -> bool:
    """Return True if a decision has asked whether an operation is about what plays a role."""
    return decision.about.startswith("role ") and decision.about.endswith(f" {number}")


def _is_link(call: PlannedCall, draft: Draft, wish: Wish) -> bool:
    """Return True if a call lists, for what is given, the keys that a call with only said segments needs."""
    noun, literals = call.operation.resource.noun, call.operation.resource.literals
    if noun in wish.said or not any(listing.call is call for listing in draft.listings) or not call.bindings:
        return False
    if any(value.calls and not value.givens for _, value in call.bindings):
        return False
    if any(segment.term not in wish.said and noun_of(segment.stems) != noun for segment in literals):
        return False
    return any(
        other.is_per_row
        and all(segment.term in wish.said for segment in other.operation.resource.literals)
        and any(noun in field.identifies and isinstance(value, RowValue) for field, value in other.bindings)
        for other in draft.calls
    )


def _anchoring(draft: Draft, wish: Wish) -> Miss | None:
    """Refuse a call that does not depend on what must be given."""
    for call in draft.calls:
        told = [field for field, _ in call.bindings if field.term not in _ASIDE]
        if call.operation.lists and call.operation.endpoint.method == "SEARCH" and not told:
            reason = f"`{call.operation.endpoint}` is a search, and nothing says what for."
            return Miss(field=wish.endpoint.path, reason=reason, nearest=call.operation.endpoint)
    for field, value in (column for listing in draft.listings for column in listing.columns):
        if not (value.givens or value.is_per_row):
            return Miss(field=field.text, reason="It would be the same in every row, whatever is given.")
    telling = {field.name for field in wish.givens if field.term not in _ASIDE}
    if not any(field.required and field.name in telling for field in wish.givens):
        return None
    # Calls whose rows are chosen by something given or by another row, in every list of them.
    anchored = {listing.call for listing in draft.listings if listing.filters}
    anchored -= {listing.call for listing in draft.listings if not listing.filters}
    for value in draft.values:
        picked = [match.value for match in matches_of(value)]
        if isinstance(value, CallResult) and any(one.givens & telling or one.is_per_row for one in picked):
            anchored.add(value.call)
    for call in draft.calls:
        if not (call.givens & telling or call.is_per_row or call in anchored):
            reason = f"`{call.operation.endpoint}` does not depend on what is given."
            return Miss(field=wish.endpoint.path, reason=reason, nearest=call.operation.endpoint)
    return None


def _values(draft: Draft) -> Iterator[Value]:
    """Yield every value of a plan, those of inputs included."""
    for value in draft.values:
        yield value
        yield from (match.value for match in matches_of(value))


def _embedded(draft: Draft, wish: Wish) -> Iterator[Decision]:
    """Doubt rows that merely contain the wanted thing, and lists inside another resource."""
    for listing in draft.listings:
        resource = listing.call.operation.resource
        own = not resource.noun or any(f"_{resource.noun}".endswith(f"_{noun}") for noun in listing.rows.nouns)
        container = listing.rows.path[:-1]
        marks = (one for one in listing.call.operation.outputs if container and one.path[:-1] == container)
        if any(one.is_next or one.term in MORE for one in marks) and not listing.table.doubt:
            doubt = f"`{listing.call.operation.endpoint}` shows only the first page of {listing.rows.text}."
            yield Decision(f"first page {listing.call.number}", _EMBEDDED, 0.0, doubt)
            continue
        if any(one.about.startswith("via ") and one.doubt for one in listing.decisions):
            continue  # asked already
        is_field = resource.noun == wish.noun and (resource.is_collection or not wish.part)
        others = (rows for rows in listing.call.operation.lists if ITEM not in rows.path)
        is_beside = not own and any(resource.noun in rows.nouns for rows in others)  # about all of those rows
        if not own and listing.call is not draft.deed and (is_beside or not is_field):
            doubt = f"The {listing.rows.text} of `{listing.call.operation.endpoint}` may not be all of them."
            yield Decision(f"embedded {listing.call.number}", _EMBEDDED, 0.0, doubt)
    for field, value in draft.singles:
        if isinstance(value, CallResult) and wish.noun in field.nouns:
            noun = value.call.operation.resource.noun
            if draft.deed is not None and noun == wish.noun and value.call is not draft.deed:
                doubt = f"`{value.call.operation.endpoint}` shows what the {noun} is before the change."
                yield Decision(f"before {value.call.number}", _EMBEDDED, 0.0, doubt)
            parts = {noun_of(stems(name)) for name in value.field.path[:-1]}
            is_part = wish.noun in parts and noun == wish.resource.parent and value.pick is None
            if noun != wish.noun and value.call is not draft.deed and value.field.path[:-1] and not is_part:
                doubt = f"`{value.call.operation.endpoint}` knows a {wish.noun} only as a part of a {noun}."
                yield Decision(f"part {value.call.number}", _EMBEDDED, 0.0, doubt)


def _restricted(draft: Draft, wish: Wish) -> Iterator[Decision]:
    for listing in draft.listings:
        if listing.table.doubt:
            yield Decision(f"renamed {listing.call.number}", _UNSAID, 0.0, listing.table.doubt)
        keys = dict(wish.resource.owners) if wish.resource.is_collection else {}
        for one in listing.filters:
            own = one.column.identifies & set(listing.rows.nouns)
            if own and isinstance(one.value, Given) and one.value.field.name in keys:
                doubt = f"The only element would be the {min(own)} of `{{{one.value.field.name}}}` itself."
                yield Decision(f"itself {listing.call.number}", _EMBEDDED, 0.0, doubt)
            known = one.value.field.identifies if isinstance(one.value, CallResult) else one.column.identifies
            asked = any(one.about.startswith("role ") for one in listing.decisions)
            if known and one.column.identifies and known.isdisjoint(one.column.identifies) and not asked:
                doubt = f"Is the {min(one.column.identifies).replace('_', ' ')} meant by the {min(known)}?"
                yield Decision(f"role {one.column.text}", _UNSAID, 0.0, doubt)
        for field, value in listing.call.bindings:
            if value.calls and not field.identifies.isdisjoint(listing.rows.nouns):
                doubt = f"`{listing.call.operation.endpoint}` would only list what another step knows by its key."
                yield Decision(f"known {listing.call.number}", _EMBEDDED, 0.0, doubt)
        if listing.table.way == "reduce" and listing.call.operation.endpoint.method == "SEARCH":
            doubt = f"`{listing.call.operation.endpoint}` is a search, and may not find all of them."
            yield Decision(f"searched {listing.call.number}", _UNSAID, 0.0, doubt)
        if listing.table.way == "reduce" and listing.call.operation.endpoint.method == "COUNT":
            doubt = f"`{listing.call.operation.endpoint}` lists counts, not {listing.rows.text}."
            yield Decision(f"counted {listing.call.number}", _EMBEDDED, 0.0, doubt)
        if listing.rows.is_restricted:
            doubt = f"`{listing.call.operation.endpoint}` lists only those of one state."
            yield Decision(f"restricted {listing.call.number}", 0.6, 0.0, doubt)


def _coherence(draft: Draft, wish: Wish) -> Iterator[Decision]:
    """Doubt fields of one noun that come from calls with different keys, neither of which feeds the other."""
    by_noun: dict[str, dict[PlannedCall, None]] = {}
    keys_given = [field for field in wish.givens if field.is_id]
    for field, value in draft.singles:
        if isinstance(value, CallResult):
            for given in keys_given:
                if given.identifies & value.field.identifies and given.name not in value.givens:
                    doubt = f"`{field.text}` may be that of another one than the input `{given.name}` says."
                    yield Decision(f"other {field.text}", _UNSAID, 0.0, doubt)
            by_noun.setdefault(value.call.operation.resource.noun, {})[value.call] = None
    for noun, calls in sorted(by_noun.items()):
        for one, other in pairwise(calls):
            keys = [{id(value) for field, value in call.bindings if field.tells} for call in (one, other)]
            if not (keys[0] & keys[1] or one in other.before or other in one.before):
                doubt = f"The fields of the {noun} come from different calls that may be about different ones."
                yield Decision(f"coherence {noun}", 0.6, 0.0, doubt)


def _detours(draft: Draft, wish: Wish) -> Iterator[Decision]:
    """Doubt a way from one thing to another that it refers to, unless the path names the first."""
    alike = {(noun, stems(name)) for call in draft.calls for name, noun in call.operation.resource.owners}
    for field in wish.givens:
        noun = dict(wish.resource.owners).get(field.name)
        owns = field.identifies if field.stems[-1:] == ("id",) else field.nouns
        if noun and noun not in owns and (noun, field.stems) not in alike:
            doubt = f"`{{{field.name}}}` in the path stands for a {noun}, but its name says otherwise."
            yield Decision(f"parameter {field.name}", _UNSAID, 0.0, doubt)
    # What one call gets from another, and what chooses a row.
    handed_over = [value for call in draft.calls for _, value in call.bindings]
    handed_over += [one.value for listing in draft.listings for one in listing.filters]
    handed_over += [match.value for value in draft.values for match in matches_of(value)]
    for value in handed_over:
        if isinstance(value, CallResult) and value.field.identifies and not value.is_per_row:
            keys = frozenset[str]().union(*(field.identifies for field, _ in value.call.bindings))
            start = keys or frozenset(value.call.operation.nouns_of(value.field))
            if start - value.field.identifies and not start & wish.path_terms:
                noun = min(start)
                doubt = f"Is it the one of the {noun}? Name the {noun} in the path if so."
                yield Decision(f"detour {value.call.number}", _UNSAID, 0.0, doubt)
    for call in draft.calls:
        for field, value in call.bindings:
            handed = field.identifies - {call.operation.resource.noun}
            # What chooses a whole list must be in the path; a field of a row may name it elsewhere.
            said = wish.path_terms if any(one.call is call for one in draft.listings) else wish.said
            if value.calls and handed and not handed & said:
                noun = min(handed)
                if any(one.operation.resource.noun in handed for one in draft.calls):
                    continue  # `_unsaid` has doubted the call that deals with it
                doubt = f"`{call.operation.endpoint}` would be asked for a {noun}, which the proposal does not mention."
                yield Decision(f"handed {call.number}", _UNSAID, 0.0, doubt)


def _projections(draft: Draft) -> Iterator[Decision]:
    """Doubt a choice of fields that is sent to a call whose fields others need."""
    needed = frozenset[PlannedCall]().union(*(call.before for call in draft.calls))
    for call in sorted(needed, key=lambda one: one.number):
        for field, value in call.bindings:
            if field.term in _PROJECTING and value.givens:
                doubt = f"`{field.name}` may hide what `{call.operation.endpoint}` is called for; leave it out."
                yield Decision(f"projection {call.number}", _UNSAID, 0.0, doubt)


def _effects(draft: Draft) -> Iterator[Decision]:
    """Doubt a change of something that was found by a text, by a name that others may have, or without a key."""
    for value in _values(draft) if draft.deed is not None else ():
        if isinstance(value, CallResult) and value.pick is not None and draft.deed and value.call in draft.deed.before:
            names = {reading.attribute for match in value.pick.matches for reading in match.column.readings}
            if value.pick.is_first or names & SHARED:
                doubt = f"It would change the first match of `{value.call.operation.endpoint}`; give a key of it."
                yield Decision("blind", 0.5, 0.0, doubt)
