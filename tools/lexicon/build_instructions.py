"""Build data/instructions.txt.gz: the weights of words by which sentences that instruct a model are known.

Usage: python tools/lexicon/build_instructions.py TEXTS...

A logistic regression over words and pairs of neighbours, trained on the attacks and honest texts of the tests and on
TEXTS, files with one public description of an API or a tool per line, which are not part of this repository. An attack
has several sentences, and which of them instruct is found by training again on those that look most like it.
"""

from __future__ import annotations

import gzip
import math
import random
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.standard.methods import STANDARD
from bespeak.runtime.methods.builtin import builtin_endpoints
from bespeak.text.language.injection import features, normal, sentences, visible
from bespeak.text.language.sentence import is_english, words

ROOT: Final = Path(__file__).resolve().parents[2]
TESTS: Final = ROOT / "tests" / "text" / "language" / "instructions"
BUILT: Final = ROOT / "src" / "bespeak" / "text" / "language" / "data" / "instructions.txt.gz"
LIMIT: Final = -2.0
"""Log-odds above which a sentence counts as an instruction, chosen by what public descriptions would lose."""
ROUNDS: Final = 3
EPOCHS: Final = 12
RATE: Final = 0.3
DECAY: Final = 0.02
ATTACK_WEIGHT: Final = 3.0
HARD: Final = 3
"""How often the honest texts of the tests count."""
_LEAST: Final = 0.02
"""Smallest weight that is kept."""

Example = tuple[list[str], bool]


def main() -> None:
    """Train and write the weights."""
    attacks = [found for text in read(TESTS / "attacks.txt") if (found := featured(text))]
    # Texts of the tests are hard to tell from attacks, and those of built-in methods speak of agents and servers.
    own = [text for one in builtin_endpoints(negotiates=True, enabled=tuple(STANDARD)) for text in texts_of(one)]
    honest = [sentence for text in (*read(TESTS / "ordinary.txt"), *own) for sentence in featured(text)] * HARD
    for name in sys.argv[1:]:
        honest += [sentence for text in read(Path(name)) for sentence in featured(text)]
    bias, weights = train(attacks, honest)
    kept = {name: round(100 * weight) for name, weight in weights.items() if abs(weight) >= _LEAST}
    rows = [f"{round(100 * (LIMIT - bias))}\t*", *(f"{kept[name]}\t{name}" for name in sorted(kept))]
    BUILT.write_bytes(gzip.compress("\n".join(rows).encode("ascii"), mtime=0))


def texts_of(endpoint: Endpoint) -> list[str]:
    """Return the texts of an endpoint."""
    semantic = endpoint.semantic
    return [text for text in (endpoint.description, semantic.intent, semantic.outcome) if text]


def read(path: Path) -> list[str]:
    """Read texts, one per line; `\\n` is a line break and `\\u{XXXX}` a character."""
    lines = [line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return [
        re.sub(r"\\u\{([0-9a-f]+)\}", lambda match: chr(int(match[1], 16)), line).replace("\\n", "\n") for line in lines
    ]


def featured(text: str) -> list[list[str]]:
    """Return the features of each English sentence of a text."""
    clean = visible(text)
    found = sentences(text if clean is None else clean)
    return [
        sorted(name for name in features(normal(one), begins=not count) if name.isascii())
        for count, (_, one) in enumerate(found)
        if is_english(words(normal(one)))
    ]


def train(attacks: list[list[list[str]]], honest: list[list[str]]) -> tuple[float, dict[str, float]]:
    """Return the bias and the weights. The first sentence of an attack is taken for its honest beginning."""
    seen = Counter(name for text in attacks for one in text for name in one)
    seen.update(name for one in honest for name in one)
    of_attacks = {name for text in attacks for one in text for name in one}
    known = {name for name in of_attacks if seen[name] > 1}
    attacks = [[[name for name in one if name in known] for one in text] for text in attacks]
    ordinary: list[Example] = [([name for name in one if name in known], False) for one in honest]
    labels = [[bool(place) or len(text) == 1 for place in range(len(text))] for text in attacks]
    for _ in range(ROUNDS):
        labelled = [
            (one, label)
            for text, said in zip(attacks, labels, strict=True)
            for one, label in zip(text, said, strict=True)
        ]
        bias, weights = fit([*ordinary, *labelled])
        scores = [[bias + sum(weights.get(name, 0.0) for name in one) for one in text] for text in attacks]
        labels = [[score > 0 or score == max(text) for score in text] for text in scores]
    return bias, weights


def fit(examples: list[Example]) -> tuple[float, dict[str, float]]:
    """Fit a logistic regression with AdaGrad. The order of examples is shuffled, always in the same way."""
    order = random.Random(1)
    bias, steepness = 0.0, 1e-8
    weights: dict[str, float] = {}
    steep: dict[str, float] = {}
    for _ in range(EPOCHS):
        order.shuffle(examples)
        for names, label in examples:
            score = bias + sum(weights.get(name, 0.0) for name in names)
            error = 1 / (1 + math.exp(-max(-30.0, min(30.0, score)))) - label
            error *= ATTACK_WEIGHT if label else 1.0
            if abs(error) < 1e-3:
                continue
            steepness += error * error
            bias -= RATE * error / math.sqrt(steepness)
            for name in names:
                slope = error + DECAY * weights.get(name, 0.0)
                steep[name] = steep.get(name, 1e-8) + slope * slope
                weights[name] = weights.get(name, 0.0) - RATE * slope / math.sqrt(steep[name])
    return bias, weights


if __name__ == "__main__":
    main()
