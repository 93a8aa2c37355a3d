"""The experiment: requests are matched with endpoints under each condition, and the results are compared in pairs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from random import Random
from typing import Final, NamedTuple

from bespeak.checks.naming.task_set import NAMINGS, TaskSet
from bespeak.contract.endpoint import Endpoint, Semantic
from bespeak.contract.handler import OpaqueHandler
from bespeak.contract.matching import EndpointIndex
from bespeak.contract.matching.needs import read_need
from bespeak.contract.matching.vectors import Backend
from bespeak.text.language.names import stem

SHORTLIST: Final = 3  # verbs that the first of two stages keeps; AGIS 11 also names three
DRAWS: Final = 2_000  # samples of the bootstrap
_Z: Final = 1.959964
_BYTES: Final = 4  # of a token, on average
Interval = tuple[float, float]


class Option(NamedTuple):
    """What is shown of an endpoint, or of a verb."""

    name: str
    verb: str
    path: str = "/"
    description: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.description}" if self.description else self.name


Choose = Callable[[str, tuple[Option, ...], int], Sequence[int]]
"""A function that returns the places of at most so many options for a request, best first."""


class Condition(NamedTuple):
    """A way of naming, what happens to the descriptions, and whether verbs are chosen before endpoints (AGIS 11)."""

    naming: str
    descriptions: str
    stages: int

    def __str__(self) -> str:
        return " ".join(map(str, self))


CONDITIONS: Final = tuple(Condition(*one) for one in product(NAMINGS, ("kept", "removed", "swapped"), (1, 2)))


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured under one condition."""

    naming: str
    descriptions: str
    stages: int
    accuracy: float
    interval: Interval  # 95 %, by Wilson
    other_words: float | None  # accuracy over requests that do not say the verb of their endpoint
    verb_found: float | None  # share of requests for which the first stage kept the right verb
    tokens: int  # shown for a request, estimated


@dataclass(frozen=True, slots=True)
class Comparison:
    """The paired difference of two conditions, on the same requests."""

    varied: str
    first: str
    second: str
    difference: float  # accuracy of the first minus that of the second
    interval: Interval  # 95 %
    other_words: float | None  # the same over requests that do not say the verb of their endpoint
    other_interval: Interval | None
    only_first: int  # requests that only the first has right
    only_second: int


@dataclass(frozen=True, slots=True)
class Report:
    matcher: str
    seed: int
    services: int
    endpoints: int
    tasks: int
    saying_the_verb: int  # requests in which the verb of their endpoint is
    by_chance: float  # accuracy of a random choice among the endpoints of the service
    conditions: list[Result]
    comparisons: list[Comparison]


class _Outcome(NamedTuple):
    is_right: bool
    verb_found: bool | None
    tokens: int


def measure(
    sets: Sequence[TaskSet],
    choose: Choose,
    matcher: str,
    *,
    seed: int = 0,
    limit: int | None = None,
    progress: Callable[[Condition], None] = lambda _: None,
) -> Report:
    """Match all requests, or `limit` of them, under all conditions. The same seed and chooser give the same report."""
    random = Random(seed)  # noqa: S311 - nothing is kept secret by it
    # The order must not tell anything: some choosers prefer what comes first.
    sets = [tuple(random.sample(one, len(one))) for one in sets]
    # A rotation of a random order gives each endpoint the description of another one.
    orders = [random.sample(range(len(one)), len(one)) for one in sets]
    others = [dict(zip(order, order[1:] + order[:1], strict=True)) for order in orders]
    places = [(at, place) for at, one in enumerate(sets) for place in range(len(one))]
    tasks = [(at, place, request) for at, place in places for request in sets[at][place].requests]
    if limit is not None and limit < len(tasks):
        tasks = sorted(random.sample(tasks, limit))
    outcomes: dict[Condition, list[_Outcome]] = {}
    for condition in CONDITIONS:
        progress(condition)
        shown = [_options(one, other, condition) for one, other in zip(sets, others, strict=True)]
        outcomes[condition] = [_ask(choose, text, shown[at], place, condition.stages) for at, place, text in tasks]
    others_words = [
        number
        for number, (at, place, text) in enumerate(tasks)
        if stem(sets[at][place].intent.split()[0].lower()) not in map(stem, read_need(text).words)
    ]
    return Report(
        matcher=matcher,
        seed=seed,
        services=len(sets),
        endpoints=len(places),
        tasks=len(tasks),
        saying_the_verb=len(tasks) - len(others_words),
        by_chance=round(sum(1 / len(sets[at]) for at, *_ in tasks) / len(tasks), 4),
        conditions=[_result(condition, found, others_words) for condition, found in outcomes.items()],
        comparisons=list(_compare(outcomes, [task[:2] for task in tasks], others_words, random)),
    )


def _options(endpoints: TaskSet, other: Mapping[int, int], condition: Condition) -> tuple[Option, ...]:
    texts = [one.description if condition.descriptions != "removed" else "" for one in endpoints]
    if condition.descriptions == "swapped":
        texts = [texts[other[place]] for place in range(len(texts))]
    return tuple(Option(*one.named(condition.naming), text) for one, text in zip(endpoints, texts, strict=True))


def _ask(choose: Choose, request: str, options: tuple[Option, ...], right: int, stages: int) -> _Outcome:
    places, found, tokens = list(range(len(options))), None, 0
    if stages == 2:
        verbs = tuple(Option(verb, verb) for verb in dict.fromkeys(option.verb for option in options))
        kept = {verbs[place].verb for place in choose(request, verbs, SHORTLIST)[:SHORTLIST]}
        found, tokens = options[right].verb in kept, _estimate(verbs)
        places = [place for place in places if options[place].verb in kept]
    shown = tuple(options[place] for place in places)
    best = choose(request, shown, 1)[:1] if shown else ()
    return _Outcome(any(places[at] == right for at in best), found, tokens + _estimate(shown))


@lru_cache(maxsize=256)
def _estimate(shown: tuple[Option, ...]) -> int:
    return math.ceil(sum(len(str(one).encode()) + 1 for one in shown) / _BYTES)


def _result(condition: Condition, outcomes: Sequence[_Outcome], other_words: Sequence[int]) -> Result:
    right = [one.is_right for one in outcomes]
    return Result(
        *condition,
        accuracy=round(sum(right) / len(right), 4),
        interval=wilson(sum(right), len(right)),
        other_words=_share([right[at] for at in other_words]),
        verb_found=_share([one.verb_found for one in outcomes if one.verb_found is not None]),
        tokens=round(sum(one.tokens for one in outcomes) / len(outcomes)),
    )


def _share(values: Sequence[bool]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None


def wilson(right: int, tasks: int) -> Interval:
    """Return the 95 % interval of a share by Wilson."""
    share, square = right / tasks, _Z * _Z / tasks
    reach = _Z * math.sqrt(share * (1 - share) / tasks + square / (4 * tasks))
    low, high = ((share + square / 2 + sign * reach) / (1 + square) for sign in (-1, 1))
    return round(max(low, 0.0), 4), round(min(high, 1.0), 4)


def _bootstrap(clusters: Sequence[Sequence[int]], random: Random) -> Callable[[Sequence[int]], tuple[float, Interval]]:
    """Return a function from gains to their mean and its 95 % interval.

    Drawn are endpoints: the requests for one are not independent, since they have its names in common.
    """
    draws = [random.choices(range(len(clusters)), k=len(clusters)) for _ in range(DRAWS)]
    totals = [sum([len(clusters[one]) for one in draw]) for draw in draws]

    def interval(gains: Sequence[int]) -> tuple[float, Interval]:
        sums = [sum([gains[at] for at in cluster]) for cluster in clusters]
        means = sorted(sum([sums[at] for at in draw]) / total for draw, total in zip(draws, totals, strict=True))
        ends = round(means[DRAWS // 40], 4), round(means[-DRAWS // 40 - 1], 4)
        return round(sum(sums) / sum(map(len, clusters)), 4), ends

    return interval


def _compare(
    outcomes: Mapping[Condition, Sequence[_Outcome]], targets: Sequence[object], others: Sequence[int], random: Random
) -> Iterator[Comparison]:
    def clustered(tasks: Sequence[int]) -> list[list[int]]:
        groups: dict[object, list[int]] = {}
        for at in tasks:
            groups.setdefault(targets[at], []).append(at)
        return list(groups.values())

    over_all = _bootstrap(clustered(range(len(targets))), random)
    over_others = _bootstrap(clustered(others), random) if others else None
    for varied, one, other in sorted(_pairs(), key=lambda pair: ("naming", "descriptions", "stages").index(pair[0])):
        gains = [a.is_right - b.is_right for a, b in zip(outcomes[one], outcomes[other], strict=True)]
        whole, (share, ends) = over_all(gains), over_others(gains) if over_others else (None, None)
        yield Comparison(varied, str(one), str(other), *whole, share, ends, gains.count(1), gains.count(-1))


def _pairs() -> Iterator[tuple[str, Condition, Condition]]:
    for one in CONDITIONS:
        if one.naming == "intent":
            yield from (("naming", one, one._replace(naming=other)) for other in NAMINGS[1:])
        if one.descriptions != "kept":
            yield "descriptions", one, one._replace(descriptions="kept")
        if one.stages == 2:
            yield "stages", one, one._replace(stages=1)


def matching_with(backend: Backend) -> Choose:
    """Return a chooser that ranks options with a backend as every face does, however unlikely the best one is."""
    # Each request is asked under every condition, and a model of sentences takes milliseconds for it.
    embed = lru_cache(maxsize=8192)(backend.embed)
    kept = backend._replace(embed=lambda texts: embed(tuple(texts)))

    @lru_cache(maxsize=256)
    def index(options: tuple[Option, ...]) -> EndpointIndex:
        return EndpointIndex([_endpoint(one) for one in options], backend=kept)

    return lambda request, options, most: [one.place for one in index(options).match(request, most, floor=0.0)]


def _endpoint(option: Option) -> Endpoint:
    return Endpoint(
        method=option.verb.upper(),
        path=option.path,
        description=option.description,
        semantic=Semantic(
            intent=option.description,
            actor="agent",
            outcome="",
            confidence=1.0,
            impact="informational",
            is_idempotent=True,
        ),
        input_schema={},
        output_schema={},
        errors=(),
        handler=OpaqueHandler(type="external_service"),
    )
