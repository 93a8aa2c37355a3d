"""Build the verb lexicon of bespeak.text.language: `python tools/lexicon/build_verbs.py`, with npm and pip installed.

With `--lists-only` it needs neither: it reads the lists beside it, and leaves what comes from the sources as it is.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import sources

from bespeak.text.language.lexicon import FORMAT
from bespeak.text.language.verb_form import MAKERS, PARTICLES, PREFIXES, Lemma, undone

ROOT: Final = sources.HERE.parents[1]
CATALOG: Final = ROOT / "src/bespeak/contract/catalog/data/methods-1.1.0.json"
TARGET: Final = ROOT / "src/bespeak/text/language/data/verbs.txt.gz"

LISTS: Final = ("not-verbs", "phrasal", "verbs")
ROWS: Final = ("instead", "intents", "paths")
"""The lists beside this script, and those whose lines are ordered entries. All but the verbs are shipped unchanged."""

AUXILIARIES: Final = (
    "is be third", "am be base", "are be base", "was be past", "were be past", "been be participle", "being be gerund",
    "has have third", "had have past", "does do third", "did do past", "done do participle",
)  # fmt: skip
"""Forms of auxiliary verbs, which the inflection table does not list as verbs."""


def header() -> list[str]:
    """Write the sources of the file; a test compares the hashes of those in the repository."""
    lines = [" ".join(source) for source in (sources.WORDNET, sources.LEMMINFLECT)]
    lines.append(f"{CATALOG.name} {sources.digest(CATALOG.read_bytes())}")
    lines.extend(
        f"{name}.txt {sources.digest((sources.HERE / f'{name}.txt').read_bytes())}" for name in (*LISTS, *ROWS)
    )
    return lines


def build(folder: Path) -> str:
    """Write the lexicon: a header, and sections separated by blank lines."""
    lists = {name: set(sources.hand_list(f"{name}.txt")) for name in LISTS}
    found = kept(lists) if sources.lists_only() else fetched(folder, lists)
    sections: dict[str, Iterable[str]] = {
        **found,
        "methods": sorted(catalog() | lists["verbs"]),
        **{name: ("\n".join(sources.hand_lines(f"{name}.txt")),) for name in ROWS},
        **{name: sorted(words) for name, words in lists.items() if name != "verbs"},
    }
    parts = [f"{name}\n{' '.join(words)}" for name, words in sections.items()]
    return "\n\n".join(["\n".join([FORMAT, *header()]), *parts])


def kept(lists: dict[str, set[str]]) -> dict[str, Iterable[str]]:
    """Return what the sources said when the file was built; a new verb of the lists counts as a noun otherwise."""
    shipped = sources.shipped(TARGET)
    numbers = iter(shipped["counts"].split())
    rows = map(" ".join, zip(numbers, numbers, numbers, strict=True))
    counts = dict(zip(shipped["verbs"].split(), rows, strict=True))
    verbs = (set(counts) - lists["not-verbs"]) | (lists["verbs"] - lists["phrasal"])
    nouns = set(shipped["nouns"].split()) | (set(counts) & lists["not-verbs"])
    return {
        "verbs": sorted(verbs),
        "counts": (counts.get(verb, "0 4 0" if verb in nouns else "0 0 0") for verb in sorted(verbs)),
        "irregular": ("\n".join(line for line in shipped["irregular"].split("\n") if line.split()[1] in verbs),),
        "strong": (verb for verb in shipped["strong"].split() if verb in verbs),
        "nouns": sorted(nouns - verbs),
        "others": (word for word in shipped["others"].split() if word not in verbs),
    }


def fetched(folder: Path, lists: dict[str, set[str]]) -> dict[str, Iterable[str]]:
    """Return what the sources say."""
    wordnet, table = sources.fetch_wordnet(folder), sources.fetch_lemminflect(folder)
    counts, forms = sources.word_counts(wordnet), sources.paradigms(table)
    nouns = {word for word, parts in counts.items() if parts["noun"]} | sources.table_nouns(table)
    others = {word for word, parts in counts.items() if parts["adjective"] or parts["adverb"]}
    known = {word for word, parts in counts.items() if parts["verb"]}
    known |= {word for word in forms if word not in nouns and word not in others}
    known -= lists["not-verbs"]
    report("redundant in verbs.txt", lists["verbs"] & known)
    verbs = known | (lists["verbs"] - lists["phrasal"])
    verbs |= {name for name in catalog() if not phrasal(name, verbs, lists["phrasal"])}
    irregular, strong = exceptions(forms, verbs)
    usual = sources.table_nouns(table) | {word for word, parts in counts.items() if parts["noun"] >= 1}
    named = {word for word in nouns - verbs if word in usual or doubtful(word)}
    return {
        "verbs": sorted(verbs),
        "counts": (quarters(counts.get(verb, Counter())) for verb in sorted(verbs)),
        "irregular": ("\n".join(sorted({*irregular, *AUXILIARIES})),),
        "strong": sorted(strong),
        "nouns": sorted(named),
        "others": sorted(word for word in others - verbs - nouns if counts[word]["adjective"] >= 1 or doubtful(word)),
    }


def catalog() -> set[str]:
    """Return the verbs of the AGTP catalog, which count as verbs because they are approved methods."""
    return {verb.lower() for verb in json.loads(CATALOG.read_text("utf-8"))["verbs"]}


def phrasal(name: str, verbs: set[str], listed: set[str]) -> bool:
    """Return True if a catalog verb is two words in one; those are recognized by rule or list at run time."""
    return name in listed or any(name.removesuffix(part) in verbs for part in PARTICLES if name.endswith(part))


def exceptions(forms: dict[str, sources.Paradigm], verbs: set[str]) -> tuple[list[str], list[str]]:
    """Return the irregular forms, and the verbs without a regular past."""
    irregular, strong = [], []
    for verb, paradigm in forms.items():
        if verb not in verbs:
            continue
        for form, written in zip(paradigm._fields, paradigm, strict=True):
            for word in set(written) - {verb}:
                rule = "past" if form == "participle" else form
                same = form == "participle" and word in paradigm.past
                if word.isascii() and word.isalpha() and not same and Lemma(verb, rule) not in undone(word):
                    irregular.append(f"{word} {verb} {form}")
        if not any(Lemma(verb, "past") in undone(word) for word in paradigm.past):
            strong.append(verb)
    return irregular, strong


def doubtful(word: str) -> bool:
    """Return True if the rules for derived verbs or inflections could mistake a noun, adjective or adverb for a
    verb.
    """
    return len(word) > 3 and (word.startswith(PREFIXES) or word.endswith((*MAKERS, *PARTICLES, "s", "ed", "ing")))


def quarters(parts: Counter[str]) -> str:
    """Convert the counts to integers: every count is a multiple of a quarter."""
    return " ".join(str(int(parts[part] * 4)) for part in ("verb", "noun", "adjective"))


def report(what: str, words: set[str]) -> None:
    """Print the lines of a list that could be removed."""
    if words:
        sys.stderr.write(f"{what}: {' '.join(sorted(words))}\n")


def main() -> None:
    """Write the file; the same inputs give the same bytes."""
    with tempfile.TemporaryDirectory() as folder:
        text = build(Path(folder))
    data = gzip.compress(text.encode("ascii"), 9, mtime=0)
    TARGET.write_bytes(data)
    sys.stderr.write(f"{TARGET.relative_to(ROOT)}: {len(data):,} bytes\n")


if __name__ == "__main__":
    main()
