"""The experiment: requests are matched with endpoints under each condition, and the results are compared in pairs.

A condition is a way of naming, what happens to the descriptions, and the number of stages. In two stages the verbs are
shown first, and then only the endpoints of the verbs that were chosen (AGIS 11).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from random import Random
from typing import Final, Literal, NamedTuple

from bespeak.checks.naming.task_set import NAMINGS, NamedEndpoint, TaskSet, requests_of
from bespeak.contract.endpoint import Endpoint, Semantic
from bespeak.contract.handler import OpaqueHandler
from bespeak.contract.matching import EndpointIndex
from bespeak.contract.matching.needs import read_need, stem
from bespeak.contract.matching.vectors import Backend

DESCRIPTIONS: Final = ("kept", "removed", "swapped")
STAGES: Final[tuple[Literal[1], Literal[2]]] = (1, 2)
DRAWS: Final = 2_000  # samples of the bootstrap
_Z: Final = 1.959964
_BYTES: Final = 4  # of a token, on average


class Option(NamedTuple):
    """What is shown of an endpoint, or of a verb."""

    name: str
    verb: str
    path: str = "/"
    description: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.description}" if self.description else self.name


class Choice(NamedTuple):
    """Places of the chosen options, best first, and the tokens that were read, if they were counted."""

    places: Sequence[int] = ()
    tokens: int | None = None


Choose = Callable[[str, tuple[Option, ...], int], Choice]
"""Choose at most so many of the options for a request."""


class Condition(NamedTuple):
    naming: str
    descriptions: str
    stages: int


CONDITIONS: Final = tuple(Condition(*one) for one in product(NAMINGS, DESCRIPTIONS, STAGES))


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured under one condition."""

    naming: str
    descriptions: str
    stages: int
    tasks: int
    right: int
    accuracy: float
    interval: tuple[float, float]  # Wilson, 95 %
    other_words: float | None  # accuracy over requests that do not say the verb of their endpoint
    verb_found: float | None  # share of requests for which the first stage kept the right verb
    unanswered: int
    tokens: float  # mean of a request


@dataclass(frozen=True, slots=True)
class Comparison:
    """The paired difference of two conditions, on the same requests."""

    kind: Literal["naming", "descriptions", "stages"]
    first: str
    second: str
    within: str
    difference: float  # accuracy of the first minus that of the second
    interval: tuple[float, float]  # 95 %, bootstrap over endpoints: requests for one endpoint are not independent
    other_words: float | None  # the difference over requests that do not say the verb of their endpoint
    other_interval: tuple[float, float] | None
    only_first: int  # requests that only the first condition has right
    only_second: int
    p: float  # McNemar, exact; not corrected for the number of comparisons


@dataclass(frozen=True, slots=True)
class Report:
    matcher: str
    seed: int
    services: int
    endpoints: int
    tasks: int
    saying_the_verb: int  # requests in which the verb of their endpoint is
    shortlist: int  # verbs that the first stage keeps
    together: bool  # True if all services are one catalog
    tokens: Literal["estimated", "counted"]
    conditions: list[Result]
    comparisons: list[Comparison]


class _Outcome(NamedTuple):
    is_right: bool
    verb_found: bool | None
    is_answered: bool
    tokens: int
    counted: bool


def measure(
    sets: Sequence[TaskSet],
    choose: Choose,
    matcher: str,
    *,
    seed: int = 0,
    limit: int | None = None,
    shortlist: int = 3,
    together: bool = False,
    progress: Callable[[Condition], None] = lambda _: None,
) -> Report:
    """Run all requests under all conditions. The same seed and the same chooser give the same report.

    `limit` draws so many requests. With `together`, the endpoints of all services are one catalog.
    """
    random = Random(seed)  # noqa: S311 - an experiment, no secret
    if together:
        sets = [TaskSet("all", tuple(endpoint for one in sets for endpoint in one.endpoints))]
    # The order must not tell anything: some choosers prefer what comes first.
    sets = [TaskSet(one.service, tuple(random.sample(one.endpoints, len(one.endpoints)))) for one in sets]
    others = [_swap(len(one.endpoints), random) for one in sets]
    tasks = list(requests_of(list(sets)))
    if limit is not None and limit < len(tasks):
        tasks = sorted(random.sample(tasks, limit))
    outcomes: dict[Condition, list[_Outcome]] = {}
    for condition in CONDITIONS:
        progress(condition)
        shown = [tuple(_options(one.endpoints, other, condition)) for one, other in zip(sets, others, strict=True)]
        outcomes[condition] = [
            _ask(choose, request, shown[at], place, condition.stages, shortlist) for at, place, request in tasks
        ]
    said = [_says_verb(request, sets[at].endpoints[place]) for at, place, request in tasks]
    return Report(
        matcher=matcher,
        seed=seed,
        services=len(sets),
        endpoints=sum(len(one.endpoints) for one in sets),
        tasks=len(tasks),
        saying_the_verb=sum(said),
        shortlist=shortlist,
        together=together,
        tokens="counted" if all(one.counted for one in outcomes[CONDITIONS[0]]) else "estimated",
        conditions=[_result(condition, found, said) for condition, found in outcomes.items()],
        comparisons=list(_compare(outcomes, [(at, place) for at, place, _ in tasks], said, random)),
    )


def _swap(size: int, random: Random) -> list[int]:
    """Return for each endpoint another one, whose description it gets."""
    order = random.sample(range(size), size)
    other = dict(zip(order, [*order[1:], order[0]], strict=True))
    return [other[place] for place in range(size)]


def _options(endpoints: Sequence[NamedEndpoint], other: Sequence[int], condition: Condition) -> Iterator[Option]:
    for place, endpoint in enumerate(endpoints):
        source = endpoints[other[place]] if condition.descriptions == "swapped" else endpoint
        description = "" if condition.descriptions == "removed" else source.description
        yield Option(*endpoint.named(condition.naming), description)


def _ask(
    choose: Choose, request: str, options: tuple[Option, ...], right: int, stages: int, shortlist: int
) -> _Outcome:
    choices: list[tuple[Choice, tuple[Option, ...]]] = []

    def chosen(shown: tuple[Option, ...], most: int) -> Sequence[int]:
        choices.append((choose(request, shown, most), shown))
        return choices[-1][0].places[:most]

    found, places = None, list(range(len(options)))
    if stages == 2:
        verbs = tuple(Option(verb, verb) for verb in dict.fromkeys(option.verb for option in options))
        kept = {verbs[place].verb for place in chosen(verbs, shortlist)}
        found = options[right].verb in kept
        places = [place for place in places if options[place].verb in kept]
    # A single endpoint needs no second question.
    best = chosen(tuple(options[place] for place in places), 1) if len(places) > 1 else range(len(places))
    return _Outcome(
        is_right=any(places[at] == right for at in best),
        verb_found=found,
        is_answered=bool(best),
        tokens=sum(_tokens(choice, request, shown) for choice, shown in choices),
        counted=all(choice.tokens is not None for choice, _ in choices),
    )


def _tokens(choice: Choice, request: str, shown: tuple[Option, ...]) -> int:
    return choice.tokens if choice.tokens is not None else _estimate(shown) + math.ceil(len(request.encode()) / _BYTES)


@lru_cache(maxsize=256)
def _estimate(shown: tuple[Option, ...]) -> int:
    return math.ceil(sum(len(str(one).encode()) + 1 for one in shown) / _BYTES)


def _says_verb(request: str, endpoint: NamedEndpoint) -> bool:
    return stem(endpoint.intent.partition(" ")[0].lower()) in map(stem, read_need(request).words)


def _result(condition: Condition, outcomes: Sequence[_Outcome], said: Sequence[bool]) -> Result:
    right = [one.is_right for one in outcomes]
    found = [one.verb_found for one in outcomes if one.verb_found is not None]
    return Result(
        *condition,
        tasks=len(right),
        right=sum(right),
        accuracy=round(sum(right) / len(right), 4),
        interval=wilson(sum(right), len(right)),
        other_words=_share([one for one, is_said in zip(right, said, strict=True) if not is_said]),
        verb_found=_share(found),
        unanswered=sum(not one.is_answered for one in outcomes),
        tokens=round(sum(one.tokens for one in outcomes) / len(outcomes), 1),
    )


def _share(values: Sequence[bool]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None


def wilson(right: int, tasks: int) -> tuple[float, float]:
    """Return the 95 % interval of a share by Wilson."""
    share, square = right / tasks, _Z * _Z
    middle = share + square / (2 * tasks)
    reach = _Z * math.sqrt(share * (1 - share) / tasks + square / (4 * tasks * tasks))
    low, high = ((middle + sign * reach) / (1 + square / tasks) for sign in (-1, 1))
    return (round(max(low, 0.0), 4), round(min(high, 1.0), 4))


def mcnemar(only_first: int, only_second: int) -> float:
    """Return how likely so uneven a split is if both are equally good: the exact test, with two sides."""
    total, least = only_first + only_second, min(only_first, only_second)
    return round(min(1.0, 2 * sum(math.comb(total, one) for one in range(least + 1)) / 2**total), 6)


class _Bootstrap:
    """Intervals of mean differences. Drawn are endpoints, since the requests for one have its names in common."""

    def __init__(self, clusters: Sequence[Sequence[int]], random: Random) -> None:
        self._clusters = [one for one in clusters if one]
        sizes = [len(one) for one in self._clusters]
        self._draws = [random.choices(range(len(sizes)), k=len(sizes)) for _ in range(DRAWS)]
        self._totals = [sum([sizes[one] for one in draw]) for draw in self._draws]

    def __call__(self, gains: Sequence[int]) -> tuple[float, tuple[float, float]] | None:
        """Return the mean of the gains and its 95 % interval; None without requests."""
        if not self._clusters:
            return None
        sums = [sum([gains[at] for at in cluster]) for cluster in self._clusters]
        drawn = zip(self._draws, self._totals, strict=True)
        means = sorted(sum([sums[at] for at in draw]) / total for draw, total in drawn)
        mean = sum(sums) / sum(map(len, self._clusters))
        return round(mean, 4), (round(means[DRAWS // 40], 4), round(means[-DRAWS // 40 - 1], 4))


def _compare(
    outcomes: Mapping[Condition, Sequence[_Outcome]],
    targets: Sequence[tuple[int, int]],
    said: Sequence[bool],
    random: Random,
) -> Iterator[Comparison]:
    groups: dict[tuple[int, int], list[int]] = {}
    for at, target in enumerate(targets):
        groups.setdefault(target, []).append(at)
    over_all = _Bootstrap(list(groups.values()), random)
    over_others = _Bootstrap([[at for at in one if not said[at]] for one in groups.values()], random)
    for (kind, first, second), (one, other, within) in _pairs():
        gains = [a.is_right - b.is_right for a, b in zip(outcomes[one], outcomes[other], strict=True)]
        whole, others = over_all(gains), over_others(gains)
        assert whole is not None
        better, worse = gains.count(1), gains.count(-1)
        yield Comparison(
            kind,
            first,
            second,
            within,
            *whole,
            *(others or (None, None)),
            only_first=better,
            only_second=worse,
            p=mcnemar(better, worse),
        )


_Kind = Literal["naming", "descriptions", "stages"]


def _pairs() -> Iterator[tuple[tuple[_Kind, str, str], tuple[Condition, Condition, str]]]:
    """Yield what is compared: names with those of HTTP and of functions, and each loss with what was there before."""
    for descriptions, stages in product(DESCRIPTIONS, STAGES):
        for naming in NAMINGS[1:]:
            pair = (Condition(one, descriptions, stages) for one in ("intent", naming))
            yield ("naming", "intent", naming), (*pair, f"{descriptions}, {_staged(stages)}")
    for naming, stages in product(NAMINGS, STAGES):
        for descriptions in DESCRIPTIONS[1:]:
            pair = (Condition(naming, one, stages) for one in (descriptions, "kept"))
            yield ("descriptions", descriptions, "kept"), (*pair, f"{naming}, {_staged(stages)}")
    for naming, descriptions in product(NAMINGS, DESCRIPTIONS):
        pair = (Condition(naming, descriptions, stages) for stages in (2, 1))
        yield ("stages", "two", "one"), (*pair, f"{naming}, {descriptions}")


def _staged(stages: int) -> str:
    return "one stage" if stages == 1 else "two stages"


def matching_with(backend: Backend) -> Choose:
    """Return a chooser that ranks options as all faces do, with a backend. It never declines to answer."""
    rows: dict[str, object] = {}

    def embed(texts: Sequence[str]) -> object:
        # Each request is asked under every condition, and a model of sentences takes milliseconds for it.
        if len(texts) > 1:
            return backend.embed(texts)
        if texts[0] not in rows:
            rows[texts[0]] = backend.embed(texts)
        return rows[texts[0]]

    kept = backend._replace(embed=embed)

    @lru_cache(maxsize=256)
    def index(options: tuple[Option, ...]) -> EndpointIndex:
        return EndpointIndex([_endpoint(one) for one in options], backend=kept)

    def choose(request: str, options: tuple[Option, ...], most: int) -> Choice:
        return Choice([one.place for one in index(options).match(request, most, floor=0.0)])

    return choose


def _endpoint(option: Option) -> Endpoint:
    semantic = Semantic(
        intent=option.description, actor="agent", outcome="", confidence=1.0, impact="informational", is_idempotent=True
    )
    return Endpoint(
        method=option.verb.upper(),
        path=option.path,
        description=option.description,
        semantic=semantic,
        input_schema={},
        output_schema={},
        errors=(),
        handler=OpaqueHandler(type="external_service"),
    )
