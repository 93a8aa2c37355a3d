"""Fit the weights by which arguments are found, and report how well they read domains that they were not fitted on.

    python tools/arguments/fit.py            # needs numpy; writes the weights into src/bespeak/agent/arguments/data
    python tools/arguments/fit.py --report   # only measures the weights that there are

The sentences are made from templates of this folder with a fixed seed, so that a second run writes the same file.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from sentences import NOW, Gold, Sample, Writer, read_templates

from bespeak.agent.arguments import finding
from bespeak.agent.arguments.candidates import Candidate
from bespeak.agent.arguments.slots import Slot, slots_of
from bespeak.agent.arguments.weighing import CALIBRATION, Pair, compare, weights

TARGET = Path(__file__).resolve().parents[2] / "src/bespeak/agent/arguments/data/weights.json"
_ROUNDS, _PENALTY, _LEAST, _FOLDS, _FEWEST = 250, 3.0, 3, 5, 20
_FITTED = {"familiar.txt": 1.0, "commands.txt": 0.05}  # share of the wordings; people say more than short commands
_PULL = 5.0  # how much a factor of a kind with few pairs stays at its usual value


def is_right(candidate: Candidate, value: Any, slot: Slot, gold: Gold | None, text: str) -> bool:
    """Return True if a candidate is what a sentence says about a slot."""
    if gold is None:
        return False
    if slot.family in ("choice", "flag"):
        wanted = gold.value if isinstance(gold.value, list) else [gold.value]
        if value in wanted:
            return True
        return any(
            text[start:end].lower() == text[candidate.start : candidate.end].lower() for start, end in gold.spans
        )
    for start, end in gold.spans:
        if (candidate.start, candidate.end) == (start, end):
            return True
        if slot.family != "text":
            around = candidate.start <= start and end <= candidate.end
            if around or (start - 4 <= candidate.start < end and candidate.end <= end + 1):
                return True
            continue
        if value == candidate.unit and candidate.kind == "money" and candidate.end == end:
            return True  # its currency
        inner = text[start:end].strip("\"'#").removeprefix("the ").lower()
        if str(candidate.value).strip("\"'#").removeprefix("the ").lower() == inner:
            return candidate.start <= start + 4 and candidate.end >= end - 1
    return False


class Pairs:
    """Rows of features, and whether each is right."""

    def __init__(self) -> None:
        self.columns: dict[str, int] = {}
        self.rows: list[list[int]] = []
        self.labels: list[bool] = []
        self.kinds: list[str] = []
        self.folds: list[int] = []
        self.samples: list[tuple[list[Pair], tuple[Slot, ...]]] = []

    def add(self, sample: Sample, fold: int) -> None:
        """Add every pair of one sample."""
        slots, own = slots_of(sample.endpoint), finding.own_words(sample.endpoint)
        _, proposals = finding.propose(sample.text, slots, own, now=NOW)
        self.samples.append((proposals, slots))
        for one in proposals:
            slot = slots[one.slot]
            self.rows.append([self.columns.setdefault(feature, len(self.columns)) for feature in one.features])
            self.labels.append(is_right(one.candidate, one.value, slot, sample.gold.get(slot.name), sample.text))
            self.kinds.append(one.kind)
            self.folds.append(fold)


def fit(pairs: Pairs) -> dict[str, float]:
    """Return weights by logistic regression, and for each kind how far they hold in domains they were not fitted on."""
    kinds, labels, totals = np.array(pairs.kinds), np.array(pairs.labels, dtype=float), np.zeros(len(pairs.rows))
    for fold in range(_FOLDS):
        away = [at for at, one in enumerate(pairs.folds) if one == fold]
        rest = [at for at, one in enumerate(pairs.folds) if one != fold]
        learnt = _descend([pairs.rows[at] for at in rest], labels[rest])
        totals[away] = [sum(learnt.get(column, 0.0) for column in pairs.rows[at]) for at in away]
    names = list(pairs.columns)
    found = {names[column]: round(value, 2) for column, value in _descend(pairs.rows, labels).items()}
    table = {name: value for name, value in sorted(found.items()) if abs(value) >= 0.05}
    facts, start = [], 0
    for proposals, slots in pairs.samples:
        facts += compare(proposals, slots, totals[start : start + len(proposals)].tolist())
        start += len(proposals)
    columns = np.array(facts)
    for kind in sorted(set(pairs.kinds)):
        these = kinds == kind
        if labels[these].sum() >= _FEWEST:
            values = _straighten(columns[these].T, labels[these])
            table |= {f"calibration={kind}|{name}": value for (name, _), value in zip(CALIBRATION, values, strict=True)}
            print(f"{kind:16} {int(labels[these].sum()):6} of {these.sum():6}", values)
    return table


def _straighten(columns: Any, labels: Any) -> list[float]:
    """Return the factors by which sums of weights and those of rivals say how often they are right: Newton's method."""
    usual = np.array([value for _, value in CALIBRATION])
    values = usual
    for _ in range(50):
        likely = 1 / (1 + np.exp(-np.clip(values @ columns, -30, 30)))
        pull = columns @ (labels - likely) + _PULL * (usual - values)
        curve = (columns * (likely * (1 - likely))) @ columns.T + _PULL * np.eye(len(usual))
        step = np.linalg.solve(curve, pull)
        values = values + np.clip(step, -0.5, 0.5)
    return [round(float(value), 2) for value in values]


def _descend(rows_: list[list[int]], labels: Any) -> dict[int, float]:
    """Return the weight of each column, with a penalty on squares: gradient descent with momentum (Adam)."""
    counts = Counter(column for row in rows_ for column in row)
    kept = [column for column, count in sorted(counts.items()) if count >= _LEAST]
    places = {column: place for place, column in enumerate(kept)}
    rows = [[places[column] for column in row if column in places] for row in rows_]
    columns = np.fromiter((column for row in rows for column in row), dtype=np.int64)
    starts = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    values, mean, spread = np.zeros(len(kept)), np.zeros(len(kept)), np.zeros(len(kept))
    for turn in range(1, _ROUNDS + 1):
        totals = np.bincount(starts, values[columns], len(rows))
        errors = 1 / (1 + np.exp(-totals)) - labels
        gradient = np.bincount(columns, errors[starts], len(kept)) + _PENALTY * values
        gradient /= len(rows)
        mean = 0.9 * mean + 0.1 * gradient
        spread = 0.999 * spread + 0.001 * gradient**2
        rate = 0.1 * (1 - turn / _ROUNDS) + 0.002
        values -= rate * (mean / (1 - 0.9**turn)) / (np.sqrt(spread / (1 - 0.999**turn)) + 1e-9)
    return dict(zip(kept, map(float, values), strict=True))


def write(table: dict[str, float]) -> None:
    """Write the weights, a line for each group of features."""
    groups: dict[str, dict[str, float]] = {}
    for name, weight in table.items():
        group = re.match(r"\w+:?[\w-]*=?", name)
        assert group is not None
        groups.setdefault(group[0], {})[name[group.end() :]] = weight
    rows = (f"{json.dumps(group)}: {json.dumps(names, separators=(',', ':'))}" for group, names in groups.items())
    TARGET.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")


def _agrees(one: finding.Argument, gold: Gold, slot: Slot, text: str) -> bool:
    """Return True if a value is what the sentence says."""
    if gold.value is not None and (slot.family in ("choice", "flag") or not gold.spans):
        return bool(gold.value == one.value)
    if slot.many:
        said = [text[start:end].lower() for start, end in gold.spans]
        return len(said) == len(one.value) and all(value in said for value in map(str.lower, map(str, one.value)))
    assert one.span is not None
    made = Candidate("name" if slot.family == "text" else slot.family, one.value, *one.span, 0, 0)
    return is_right(made, one.value, slot, gold, text)


def measure(samples: list[Sample], table: dict[str, float], show: int = 0) -> dict[str, float]:
    """Return precision, recall, F1, whole requests, inventions, and required fields that were rightly left empty."""
    tally: Counter[str] = Counter()
    finding.weights = lambda: table  # type: ignore[assignment]
    for sample in samples:
        slots = {slot.name: slot for slot in slots_of(sample.endpoint)}
        result = finding.find_arguments(sample.text, sample.endpoint, now=NOW)
        good = invented = 0
        for one in result.found:
            gold, slot = sample.gold.get(one.name), slots[one.name]
            wanted = gold is not None and _agrees(one, gold, slot, sample.text)
            good += wanted
            invented += gold is None
            if show and not wanted:
                show -= 1
                print(f"  {sample.text!r}: {one.name}={one.value!r} ({one.confidence}), said {gold}")
        for name, gold in sample.gold.items() if show else ():
            if name not in {one.name for one in result.found}:
                show -= 1
                print(f"  {sample.text!r}: missed {name}, said {gold}")
        tally["filled"] += len(result.found)
        tally["right"] += good
        tally["said"] += len(sample.gold)
        if sample.gold:
            tally["requests"] += 1
            tally["whole"] += good == len(sample.gold) == len(result.found)
        tally["invents"] += invented > 0
        names = {one.name for one in result.found}
        unsaid = [slot.name for slot in slots.values() if slot.required and slot.name not in sample.gold]
        tally["unsaid"] += len(unsaid)
        tally["empty"] += sum(name not in names for name in unsaid)
    precision, recall = tally["right"] / max(tally["filled"], 1), tally["right"] / max(tally["said"], 1)
    return {
        "P": precision, "R": recall, "F1": 2 * precision * recall / max(precision + recall, 1e-9),
        "whole": tally["whole"] / tally["requests"], "invents": tally["invents"] / len(samples),
        "unsaid left empty": tally["empty"] / max(tally["unsaid"], 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", action="store_true", help="measure only")
    parser.add_argument("--show", type=int, default=0, help="print this many wrong values")
    parser.add_argument("--variants", type=int, default=40, help="wordings of each contract")
    options = parser.parse_args()
    begun = time.process_time()
    if options.report:
        table = dict(weights())
    else:
        pairs, writer = Pairs(), Writer(1)
        for file, share in _FITTED.items():
            for number, template in enumerate(read_templates(file)):
                for sample in writer.samples(template, round(options.variants * share), 16):
                    pairs.add(sample, number % _FOLDS)
        spent = f"{time.process_time() - begun:.0f} s"
        print(f"{len(pairs.rows)} pairs, {sum(pairs.labels)} right, {len(pairs.columns)} features, {spent}")
        table = fit(pairs)
        write(table)
        print(f"{len(table)} weights, {TARGET.stat().st_size} bytes, {time.process_time() - begun:.0f} s")
    for file in (*_FITTED, "held-out.txt"):
        writer = Writer(2)
        samples = [sample for template in read_templates(file) for sample in writer.samples(template, 15, 5)]
        start = time.process_time()
        found = measure(samples, table, options.show if file == "held-out.txt" else 0)
        each = 1000 * (time.process_time() - start) / len(samples)
        print(f"{file:12}", " ".join(f"{key} {value:.3f}" for key, value in found.items()), f"{each:.2f} ms each")


if __name__ == "__main__":
    main()
