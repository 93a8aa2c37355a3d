"""Fit the confidences of the aligner: how often pairs with a score are right, by kind of term.

`python tools/alignment/fit.py` aligns the vocabularies of `vocabularies.txt` and those of the tests, and prints the
tables of `aligner.calibrate`. Run it after a change to the aligner and copy them. A test fails if they differ.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parents[1]))

from tests.extensions.semantics.alignment import anatomy, university  # noqa: E402

from bespeak.contract.core_ontology import XSD  # noqa: E402
from bespeak.extensions.semantics.alignment.aligner import Aligned, align  # noqa: E402
from bespeak.extensions.semantics.alignment.policy import Policy  # noqa: E402
from bespeak.extensions.semantics.ontology.reader import read_ontology  # noqa: E402
from bespeak.extensions.semantics.terms import Ontology, Term  # noqa: E402

Pair = tuple[Ontology, Ontology, set[tuple[str, str]]]
Table = tuple[tuple[float, float], ...]
_EVERYTHING: Final = Policy(accept=0.0, threshold=0.0, ask=0.0)
_PLACES: Final[dict[str, tuple[float, ...]]] = {
    "supported": (0.6, 0.75, 0.82, 0.9, 0.97, 1.0),
    "alone": (0.6, 0.75, 0.82, 0.9, 0.97, 1.0),
    "properties": (0.5, 0.7, 0.85, 1.0),
}
# What published results of such matchers let expect: vocabularies by one author are easier than those of strangers.
_PRIOR: Final[dict[str, tuple[float, ...]]] = {
    "supported": (0.2, 0.42, 0.62, 0.8, 0.9, 0.95),
    "alone": (0.15, 0.3, 0.5, 0.62, 0.8, 0.86),
    "properties": (0.2, 0.45, 0.5, 0.56),
}
_DOUBT: Final = 160.0  # number of pairs at one place that count as much as the prior


def read_vocabularies(text: str) -> Iterator[Pair]:
    """Read the file of vocabularies."""
    for number, block in enumerate(text.split("\npair ")[1:]):
        name, *lines = block.splitlines()
        bases = {side: f"http://{side}.example/{name}" for side in "ab"}
        terms: dict[str, dict[str, Term]] = {"a": {}, "b": {}}
        same: set[tuple[str, str]] = set()
        for side, _, rest in (line.partition(" ") for line in lines if line.strip()):
            for entry in rest.split("; "):
                if side == "=":
                    one, other = entry.split()
                    same.add((f"{bases['a']}#{one}", f"{bases['b']}#{other}"))
                else:
                    term = _read_term(entry, bases[side])
                    terms[side][term.iri] = term
        one, other = (Ontology(id=bases[side], version=f"{number}", terms=terms[side]) for side in "ab")
        yield one, other, same


def _read_term(entry: str, base: str) -> Term:
    name, colon, ends = entry.partition(" : ")
    if colon:
        domain, range_ = ends.split(" > ")
        of_data = range_[0].islower()
        ranges = (f"{XSD}{range_}" if of_data else f"{base}#{range_}",)
        kind = "data_property" if of_data else "object_property"
        return Term(iri=f"{base}#{name}", kind=kind, domains=(f"{base}#{domain}",), ranges=ranges)
    name, _, parent = entry.partition(" < ")
    return Term(iri=f"{base}#{name}", kind="class", parents=(f"{base}#{parent}",) if parent else ())


def pairs() -> Iterator[Pair]:
    """Return everything that the confidences are fitted to."""
    yield from read_vocabularies((FOLDER / "vocabularies.txt").read_text("utf-8"))
    mouse, human, reference = anatomy.pair(300)
    heads = {(f"http://mouse.example#{name}", f"http://human.example#{name}") for name in anatomy.declared_names()}
    for documents, same in (((mouse, human), reference | heads), (university.documents(), university.reference())):
        one, other = (read_ontology(data, "o.owl")[0] for data in documents)
        assert one is not None
        assert other is not None
        yield one, other, same


def observe() -> dict[str, list[tuple[float, bool]]]:
    """Return the score of each pair that would be proposed, and whether it is right, by table."""
    seen: dict[str, list[tuple[float, bool]]] = {name: [] for name in _PLACES}
    for one, other, same in pairs():
        aligned = align(one, other, policy=_EVERYTHING)
        assert isinstance(aligned, Aligned)
        for rule in aligned.alignment.rules:
            of_property = one.terms[rule.source].kind.endswith("property")
            supported = rule.signals.get("structural", 0.0) >= 0.5
            table = "properties" if of_property else "supported" if supported else "alone"
            seen[table].append((rule.score or 0.0, (rule.source, rule.target) in same))
    return seen


def fit(seen: list[tuple[float, bool]], places: tuple[float, ...], prior: tuple[float, ...]) -> Table:
    """Return an isotonic table: of pairs around each place, the share that is right; neighbors that fall are joined."""
    edges = [0.0, *((low + high) / 2 for low, high in pairwise(places)), 2.0]
    groups = []
    for (low, high), place, expected in zip(pairwise(edges), places, prior, strict=True):
        near = [right for score, right in seen if low <= score < high]
        groups.append([sum(near) + _DOUBT * expected, len(near) + _DOUBT, [place]])
    joined: list[list[Any]] = []
    for group in groups:
        joined.append(group)
        while len(joined) > 1 and joined[-2][0] / joined[-2][1] >= joined[-1][0] / joined[-1][1]:
            last = joined.pop()
            joined[-1] = [joined[-1][0] + last[0], joined[-1][1] + last[1], joined[-1][2] + last[2]]
    return ((0.0, 0.0), *((place, round(right / count, 2)) for right, count, places in joined for place in places))


def tables() -> dict[str, Table]:
    """Return all tables, as `aligner` should have them."""
    return {name: fit(seen, _PLACES[name], _PRIOR[name]) for name, seen in observe().items()}


if __name__ == "__main__":
    for name, found in tables().items():
        print(f"_{name.upper()}: Final = {found}")
    for name, seen in observe().items():
        print(f"# {name}: {len(seen)} pairs, {sum(right for _, right in seen)} right")
