"""CLASSIFY and RECOMMEND: texts are compared with labels, and rows with a context and a goal (Tier 2 4.9, 4.13)."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.acquire.methods import texts_of
from bespeak.extensions.acquire.store import split_words
from bespeak.extensions.compute.methods import weigh
from bespeak.extensions.compute.models import MOST_ROWS, find_model, run_model
from bespeak.extensions.data.collection import (
    Collection,
    DataCollection,
    Row,
    find_collection,
    list_collections,
    meets,
    read_filters,
    read_rows,
    value_of,
)
from bespeak.extensions.data.query import DataFilter
from bespeak.runtime.answer import Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.concurrency import compute_in_thread
from bespeak.runtime.handling import handler, invalid, refusal
from bespeak.text.language.embedding import cosines
from bespeak.text.language.names import singular
from bespeak.text.language.sentence import listed
from bespeak.text.language.verb_form import lemmas

_MOST_WORDS: Final = 300  # first words of a text that are compared
_FAR: Final = 0.2  # cosine of texts that have nothing to do with each other; they had up to 0.16 with wordllama
_STEP: Final = 0.3  # what a cosine must exceed it by to count as much as a word that only one text has


def join_texts(value: Any) -> str:
    """Return the texts in a value, however deep, as one."""
    return " ".join(text for _, text in texts_of({"": value}))


def read_stems(text: str) -> frozenset[str]:
    """Return the stems of the words of a text, without those that every text has."""
    found = map(singular, set(split_words(text, most=_MOST_WORDS)) - listed("english") - listed("foreign"))
    return frozenset(next((one.verb for one in lemmas(stem)), stem) for stem in found)


def compare(texts: Sequence[str], others: Sequence[str], strong: Sequence[str] = ()) -> tuple[list[list[float]], str]:
    """Return the evidence that each text is about each of the others, and the method: `lexical` or `embedding`.

    A word that only one of the others has counts 1, a `strong` one of it 1.5, and one that all have almost nothing.
    Vectors add what words do not show.
    """
    having: dict[str, dict[int, float]] = {}
    for weight, side in ((1.0, others), (1.5, strong)):
        for place, text in enumerate(side):
            for word in read_stems(text):
                having.setdefault(word, {})[place] = weight
    rarity = {word: math.log(1 + (len(others) - len(one) + 0.5) / (len(one) + 0.5)) for word, one in having.items()}
    rarest = math.log(1 + (len(others) - 0.5) / 1.5)
    found = [[0.0] * len(others) for _ in texts]
    for row, text in zip(found, texts, strict=True):
        for word in sorted(read_stems(text) & having.keys()):  # in an order, so that sums do not differ
            for place, weight in having[word].items():
                row[place] += weight * rarity[word] / rarest
    vectors = cosines(texts, others)
    for row, near in zip(found, vectors or (), strict=False):
        row[:] = [own + max(cosine - _FAR, 0.0) / _STEP for own, cosine in zip(row, near, strict=True)]
    return found, "lexical" if vectors is None else "embedding"


_CLASSIFY, _RECOMMEND = STANDARD["CLASSIFY"], STANDARD["RECOMMEND"]
_MOST_LABELS: Final = 500
_MOST_CANDIDATES: Final = 10_000
_MOST_OWN: Final = 1000  # rows that a context names
_THRESHOLD: Final = 0.35  # one word that only the label has is enough, one that two labels have is not
_ENOUGH: Final = 1.2  # evidence at which the confidence that a text is about a label is 0.63
_RECOMMENDED: Final = 20
_SHARED: Final = 8  # words in a rationale
_KNOWN: Final = ("history", "liked")  # members of a context that are ids
Chances = list[dict[str, float | None]]  # labels of each item, with their confidence


@handler
async def classify(call: RoutedCall) -> Envelope:
    """Answer CLASSIFY /. An item that fits no label has none: it is not guessed."""
    given, taxonomy, several = call.input, call.input["taxonomy"], call.input.get("multi_label", False)
    items: Sequence[Any] = await read_rows(call, _CLASSIFY, given["items"], "items", most=MOST_ROWS)
    threshold = given.get("confidence_threshold")
    if isinstance(taxonomy, Mapping) and "model" in taxonomy:
        chances = await _ask_model(call, taxonomy["model"], items)
        how, by, default = f"model {taxonomy['model']}", "probability that the model tells", 0.0
        if threshold is not None and any(None in one.values() for one in chances):
            raise invalid("confidence_threshold", "must be left out: the model does not tell its confidence.")
    else:
        rows = await read_rows(call, _CLASSIFY, taxonomy, "taxonomy", most=_MOST_LABELS)
        chances, how = await compute_in_thread(call.agent_id, _classify, items, _read_labels(rows), several)
        share = "" if several else ", times the share of the label in the evidence for all"
        by, default = f"1 - exp(-evidence / {_ENOUGH}){share}", _THRESHOLD
    least = default if threshold is None else threshold
    classified = []
    for item, chance in zip(items, chances, strict=True):
        kept: list[dict[str, Any]] = [
            {"label": label, "confidence": one} for label, one in chance.items() if one is None or one >= least
        ]
        kept.sort(key=lambda one: -(one["confidence"] or 0.0))
        classified.append({"item": item, "labels": kept if several else kept[:1]})
    told = {"count": len(items), "unassigned": sum(not one["labels"] for one in classified)}
    return Envelope({**told, "classified": classified, "method": how, "confidence_method": by})


async def _ask_model(call: RoutedCall, name: str, items: Sequence[Any]) -> Chances:
    """Return the labels that a model gives. A text is the first member of a row."""
    _, joined = find_model(call, _CLASSIFY, name, "taxonomy")
    members = joined.participant.options.members
    rows = [{members[0]: one} if isinstance(one, str) else one for one in items]
    found = await run_model(call, _CLASSIFY, joined, rows, ("/rows", "/items"))
    return [{str(one["value"]): one.get("confidence"), **one.get("scores", {})} for one in found]


def _read_labels(given: Sequence[Any]) -> dict[str, tuple[str, str]]:
    """Return what describes each label, and its name with its keywords, which count more."""
    found: dict[str, tuple[str, str]] = {}
    for one in given:
        about: Mapping[str, Any] = {"label": one} if isinstance(one, str) else one
        label = about.get("label", about.get("name"))
        if not isinstance(label, str) or not label or label in found:
            fault = f"has {label!r:.80} twice" if label in found else "needs a `label` or `name` in each row"
            raise refusal(_CLASSIFY, "invalid-taxonomy", f"`taxonomy` {fault}.", field="/taxonomy")
        strong = join_texts([label.replace("_", " "), about.get("keywords")])
        found[label] = join_texts([strong, about.get("description"), about.get("examples")]), strong
    return found


def _classify(items: Sequence[Any], labels: Mapping[str, tuple[str, str]], several: bool) -> tuple[Chances, str]:
    matrix, how = compare([join_texts(one) for one in items], *zip(*labels.values(), strict=True))
    chances: Chances = []
    for evidence in matrix:
        total = 1.0 if several else sum(evidence)
        strong = [(1 - math.exp(-one / _ENOUGH)) * (1 if several else one / (total or 1)) for one in evidence]
        chances.append({label: round(one, 4) for label, one in zip(labels, strong, strict=True) if one > 0})
    return chances, how


class _Wanted(NamedTuple):
    """What the candidates of a recommendation are compared with."""

    columns: Mapping[str, float]  # 1 for those that are to be large, -1 for those that are to be small
    texts: Mapping[str, str]  # texts of the context and, if it is one, the goal
    wishes: Mapping[str, Sequence[DataFilter]]
    limit: int


@handler
async def recommend(call: RoutedCall) -> Envelope:
    """Answer RECOMMEND /. Constraints are limits that no recommendation exceeds; goal and context order the rest."""
    given, limits, goal = call.input, call.input.get("constraints", {}), call.input["goal"]
    collection = await _find_source(call, given.get("from"))
    context = given["context"] if isinstance(given["context"], Mapping) else {"text": given["context"]}
    wishes = {name: read_filters({name: one}, "context") for name, one in context.get("preferences", {}).items()}
    filters = read_filters(limits.get("filter", {}), "constraints")
    if "budget" in limits:
        filters += (DataFilter(limits["budget"]["column"], "max", limits["budget"]["max"]),)
    known = [one for name in _KNOWN for one in context.get(name, ())]
    excluded = {str(one) for one in (*known, *limits.get("exclude", ()))}
    keys = collection.key if isinstance(collection, DataCollection) else ("entity_id", "resource_id", "id")
    if excluded and not keys:
        raise invalid("from", f"names {collection.name}, whose rows have no key by which some are known or excluded.")
    own = [DataFilter(key, "in", known) for key in keys if known]
    collection.check(filters, (), "constraints")
    collection.check([one for wish in wishes.values() for one in wish], (), "context")
    if isinstance(collection, DataCollection):
        collection.check(own, (), "context")
    liked = [row for one in own for row in await collection.gather([one], _MOST_OWN)]
    rows = await collection.gather(filters, _MOST_CANDIDATES)
    rows = [row for row in rows if excluded.isdisjoint(str(row[key]) for key in keys if key in row)]
    rest = {name: one for name, one in context.items() if name not in (*_KNOWN, "preferences")}
    columns: dict[str, float] = {}
    for name, weight in (("maximize", 1.0), ("minimize", -1.0)) if isinstance(goal, Mapping) else ():
        columns |= dict.fromkeys([goal[name]] if isinstance(goal.get(name), str) else goal.get(name, ()), weight)
    texts = {"context": join_texts([rest, liked])} | ({"goal": goal} if isinstance(goal, str) else {})
    wanted = _Wanted(columns, texts, wishes, given.get("limit", _RECOMMENDED))
    made, unscored, how = await compute_in_thread(call.agent_id, _recommend, rows, wanted)
    if unscored and not made:
        raise invalid("goal", f"names columns of which no candidate of {collection.name} has a number.")
    for one in made if not given.get("explain", True) else ():
        del one["rationale"]
    told = {"collection": collection.name, "recommendations": made, "count": len(made), "candidates": len(rows)}
    by = "share of the candidates that score less, times the share of goal and context that could be compared"
    return Envelope({**told, "unscored": unscored, "method": how, "confidence_method": by})


async def _find_source(call: RoutedCall, name: str | None) -> Collection:
    if name is not None:
        return await find_collection(call, _RECOMMEND, name, "from")
    found = await list_collections(call)
    if len(found) != 1:
        known = ", ".join(sorted(one.name for one in found)[:50]) or "none"
        message = f"Name the collection of the candidates in `from`; this agent may read {known}."
        raise refusal(_RECOMMEND, "collection-required", message, field="/from")
    return found[0]


def _recommend(rows: Sequence[Row], wanted: _Wanted) -> tuple[list[dict[str, Any]], int, str]:
    """Return the best rows, how many the goal could not compare, and the method."""
    columns, asked, wishes, limit = wanted
    texts = [join_texts(row) for row in rows]
    matrix, engine = compare(list(asked.values()), texts)
    near = {name: [one / max(row) for one in row] for name, row in zip(asked, matrix, strict=True) if any(row)}
    goals = weigh(rows, columns) if columns else near.get("goal", [0.0] * len(rows))
    scored = []
    for place, goal in enumerate(goals):
        if goal is not None:
            met = [name for name, wish in wishes.items() if meets(rows[place], wish)]
            signals = [near["context"][place]] if "context" in near else []
            signals += [len(met) / len(wishes)] if wishes else []
            fit = sum(signals) / (len(signals) or 1)
            scored.append((round((goal + fit) / 2 if signals else goal, 6), place, goal, fit, met))
    scored.sort(key=lambda one: (-one[0], one[1]))
    scores = [one[0] for one in reversed(scored)]
    compared = bool(columns or "goal" in near) + bool("context" in near or wishes)
    sure = compared / (1 + bool(asked["context"] or wishes)) / (len(scores) or 1)
    made = []
    for score, place, goal, fit, met in scored[:limit]:
        reasons = [f"{name} is {value_of(rows[place], name)}" for name in columns]
        for name, text in asked.items():
            shared = sorted(read_stems(text) & read_stems(texts[place]))[:_SHARED]
            reasons += [f"it shares {', '.join(shared)} with the {name}"] * bool(shared)
        reasons += [f"it meets the preferences {', '.join(met)}"] * bool(met)
        told = {"item": rows[place], "score": score, "confidence": round(bisect_left(scores, score) * sure, 4)}
        rationale = f"Goal {goal:.2f}, context {fit:.2f}: {'; '.join(reasons) or 'nothing is alike'}."
        made.append({**told, "rationale": rationale})
    by = "columns scaled to 0..1" if columns else f"words, {engine}"
    return made, len(rows) - len(scored), f"mean of goal ({by}) and context (words, {engine}, and preferences)"
