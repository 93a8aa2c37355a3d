"""Time and quality of the aligner. Run `python bench/alignment.py` for generated anatomies, or give files:
`python bench/alignment.py ONTOLOGY ONTOLOGY REFERENCE ...`, with references in the Alignment API format.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Final

from report import Goal, table

from bespeak.extensions.semantics.alignment.aligner import Aligned, align
from bespeak.extensions.semantics.alignment.notation import read_alignment
from bespeak.extensions.semantics.ontology.reader import read_ontology
from bespeak.extensions.semantics.terms import Ontology
from bespeak.protocol.exchange.refusal import Fault
from bespeak.text.language.embedding import embed

SECONDS: Final = Goal("CPU", at_most=5, unit=" s")
_TERMS: Final = 3_000
_EACH: Final = 3

Case = tuple[str, bytes, bytes, set[tuple[str, str]]]
"""Name, two ontologies, and the true mappings."""


def measure(cases: list[Case] | None = None, *, embeddings: bool = False) -> bool:
    """Print time, precision, recall and F1 for each case; return True if the time is within the goal."""
    rows = [["ontologies", "terms", "load s", "align s", "precision", "recall", "F1"]]
    totals = [0, 0, 0]
    spent = 0.0
    for name, one, other, reference in cases or [_generated()]:
        begun = time.process_time()
        ontologies = [_read(data, name) for data in (one, other)]
        loaded = time.process_time()
        aligned = align(*ontologies, embed=embed if embeddings else None)
        ended = time.process_time()
        if isinstance(aligned, Fault):
            raise SystemExit(aligned.message)
        counts = _count(aligned, reference)
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        spent += ended - begun
        terms = " x ".join(str(len(ontology.terms)) for ontology in ontologies)
        times = [f"{loaded - begun:.2f}", f"{ended - loaded:.2f}"]
        rows.append([name, terms, *times, *_quality(*counts)])
    if len(rows) > 2:
        rows.append(["all, micro-average", "", "", f"{spent:.2f}", *_quality(*totals)])
    print(table(rows))
    print("  " + SECONDS.line("CPU time", spent))
    return SECONDS.met(spent)


def _count(aligned: Aligned, reference: set[tuple[str, str]]) -> tuple[int, int, int]:
    """Count the right mappings, all mappings and the true ones."""
    found = {(rule.source, rule.target) for rule in aligned.alignment.rules}
    return len(found & reference), len(found), len(reference)


def _quality(right: int, found: int, true: int) -> list[str]:
    precision, recall = right / max(found, 1), right / max(true, 1)
    return [f"{value:.3f}" for value in (precision, recall, 2 * right / max(found + true, 1))]


def _read(data: bytes, name: str) -> Ontology:
    ontology, findings = read_ontology(data, f"{name}.owl")
    if ontology is None:
        raise SystemExit(str(findings[0]))
    return ontology


def _generated() -> Case:
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from tests.extensions.semantics.alignment import anatomy

    one, other, reference = anatomy.pair(_TERMS)
    heads = {(f"http://mouse.example#{name}", f"http://human.example#{name}") for name in anatomy.declared_names()}
    return "generated anatomies", one, other, reference | heads


def _case(one: Path, other: Path, reference: Path) -> Case:
    document = read_alignment(reference.read_bytes(), str(reference))
    if document.alignment is None:
        raise SystemExit(str(document.findings[0]))
    true = {(rule.source, rule.target) for rule in document.alignment.rules if rule.relation == "equivalent"}
    return f"{one.stem} - {other.stem}", one.read_bytes(), other.read_bytes(), true


def main() -> int:
    """Run the cases of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="two ontologies and their reference, repeated")
    parser.add_argument("--embeddings", action="store_true", help="also compare vectors")
    options = parser.parse_args()
    if len(options.files) % _EACH:
        parser.error("give two ontologies and a reference for each case")
    groups = [options.files[place : place + _EACH] for place in range(0, len(options.files), _EACH)]
    return 0 if measure([_case(*group) for group in groups] or None, embeddings=options.embeddings) else 1


if __name__ == "__main__":
    sys.exit(main())
