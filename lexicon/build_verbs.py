"""Makes the verb lexicon of bespeak.text.language: `python lexicon/build_verbs.py`, with npm and pip at hand."""

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

ROOT: Final = sources.HERE.parent
CATALOG: Final = ROOT / "src/bespeak/contract/catalog/data/methods-1.1.0.json"
TARGET: Final = ROOT / "src/bespeak/text/language/data/verbs.txt.gz"

LISTS: Final = ("not-verbs", "phrasal", "verbs")
ROWS: Final = ("instead", "intents", "paths")
"""The lists beside this script, and those whose lines mean something. All but the verbs are shipped as they are."""

AUXILIARIES: Final = (
    "is be third", "am be base", "are be base", "was be past", "were be past", "been be participle", "being be gerund",
    "has have third", "had have past", "does do third", "did do past", "done do participle",
)  # fmt: skip
"""Forms of the verbs that the inflection table treats as no verbs of their own."""


def header() -> list[str]:
    """What the file is made from; a test compares the hashes of the files that are in the repository."""
    lines = [" ".join(source) for source in (sources.WORDNET, sources.LEMMINFLECT)]
    lines.append(f"{CATALOG.name} {sources.digest(CATALOG.read_bytes())}")
    lines.extend(
        f"{name}.txt {sources.digest((sources.HERE / f'{name}.txt').read_bytes())}" for name in (*LISTS, *ROWS)
    )
    return lines


def build(folder: Path) -> str:
    """The text of the lexicon: a head, and sections that a blank line ends."""
    lists = {name: set(sources.hand_list(f"{name}.txt")) for name in LISTS}
    wordnet, table = sources.fetch_wordnet(folder), sources.fetch_lemminflect(folder)
    counts, forms = sources.word_counts(wordnet), sources.paradigms(table)
    nouns = {word for word, parts in counts.items() if parts["noun"]} | sources.table_nouns(table)
    others = {word for word, parts in counts.items() if parts["adjective"] or parts["adverb"]}
    known = {word for word, parts in counts.items() if parts["verb"]}
    known |= {word for word in forms if word not in nouns and word not in others}
    known -= lists["not-verbs"]
    report("in verbs.txt, and known without it", lists["verbs"] & known)
    verbs = known | (lists["verbs"] - lists["phrasal"])
    verbs |= {name for name in catalog() if not phrasal(name, verbs, lists["phrasal"])}
    irregular, strong = exceptions(forms, verbs)
    usual = sources.table_nouns(table) | {word for word, parts in counts.items() if parts["noun"] >= 1}
    kept = {word for word in nouns - verbs if word in usual or doubtful(word)}
    sections: dict[str, Iterable[str]] = {
        "verbs": sorted(verbs),
        "counts": (quarters(counts.get(verb, Counter())) for verb in sorted(verbs)),
        "irregular": ("\n".join(sorted({*irregular, *AUXILIARIES})),),
        "strong": sorted(strong),
        "methods": sorted(catalog() | lists["verbs"]),
        "nouns": sorted(kept),
        "others": sorted(word for word in others - verbs - nouns if counts[word]["adjective"] >= 1 or doubtful(word)),
        **{name: ("\n".join(sources.hand_lines(f"{name}.txt")),) for name in ROWS},
        **{name: sorted(words) for name, words in lists.items() if name != "verbs"},
    }
    parts = [f"{name}\n{' '.join(words)}" for name, words in sections.items()]
    return "\n\n".join(["\n".join([FORMAT, *header()]), *parts])


def catalog() -> set[str]:
    """The verbs of the AGTP catalog: approved as methods, so they are verbs here."""
    return {verb.lower() for verb in json.loads(CATALOG.read_text("utf-8"))["verbs"]}


def phrasal(name: str, verbs: set[str], listed: set[str]) -> bool:
    """Whether a catalog verb is two words in one; such are found by rule or list at run time."""
    return name in listed or any(name.removesuffix(part) in verbs for part in PARTICLES if name.endswith(part))


def exceptions(forms: dict[str, sources.Paradigm], verbs: set[str]) -> tuple[list[str], list[str]]:
    """The forms that no rule makes, and the verbs that have no regular past."""
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
    """Whether the rules for derived verbs or for inflections could take a noun, adjective or adverb for a verb."""
    return len(word) > 3 and (word.startswith(PREFIXES) or word.endswith((*MAKERS, *PARTICLES, "s", "ed", "ing")))


def quarters(parts: Counter[str]) -> str:
    """The counts as whole numbers: every count is a multiple of a quarter."""
    return " ".join(str(int(parts[part] * 4)) for part in ("verb", "noun", "adjective"))


def report(what: str, words: set[str]) -> None:
    """Tells the person who rebuilds about lines that could go."""
    if words:
        sys.stderr.write(f"{what}: {' '.join(sorted(words))}\n")


def main() -> None:
    """Writes the file; the same inputs make the same bytes."""
    with tempfile.TemporaryDirectory() as folder:
        text = build(Path(folder))
    data = gzip.compress(text.encode("ascii"), 9, mtime=0)
    TARGET.write_bytes(data)
    sys.stderr.write(f"{TARGET.relative_to(ROOT)}: {len(data):,} bytes\n")


if __name__ == "__main__":
    main()
