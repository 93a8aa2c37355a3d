"""Is ANALYZE of a million rows of a CSV as fast as pandas that computes the same figures?

Run it alone: `python bench/analysis.py [ROWS]`. Both read the file for each analysis, and run by turns. It prints the
least processor time and the best time of each, the ratio of processor time, and the peak memory of this process after
all analyses and before pandas is loaded.
"""

from __future__ import annotations

import asyncio
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

from report import Goal, table

import bespeak
from bespeak import App

FASTER = Goal("analysis", at_least=1.0)
ROUNDS = 5
NUMBERS = ("amount", "units", "price")


def write_rows(path: Path, count: int) -> None:
    drawn = random.Random(7)
    with path.open("w") as file:
        file.write("id,placed,region,amount,units,price\n")
        for at in range(count):
            day = f"2026-{at * 12 // count + 1:02}-{at % 28 + 1:02}"
            amount, units = drawn.gauss(100, 10) + (900 if at % 50_000 == 49_999 else 0), drawn.randrange(1, 40)
            file.write(f"{at},{day},r-{at % 17},{amount:.2f},{units},{units * 2.5 + drawn.gauss(0, 5):.3f}\n")


def pandas_analyses(path: Path) -> dict[str, Callable[[], Any]]:
    import pandas as pd

    def anomaly() -> Any:
        frame, found = pd.read_csv(path), []
        for name in NUMBERS:
            values = frame[name]
            middle, quartiles, least = values.median(), values.quantile([0.25, 0.75]), values.min()
            mad = (values - middle).abs().median()
            scores = (values - middle) / (mad * 1.4826)
            outside = scores[scores.abs() > 3.5]
            found.append((quartiles, least, len(outside), frame.loc[outside.abs().nlargest(20).index]))
        return found

    def trend() -> Any:
        frame, found = pd.read_csv(path, parse_dates=["placed"]), []
        for name in NUMBERS:
            points = frame.groupby("placed")[name].median()
            bounds = pd.cut(points.index.astype("int64"), 200) if len(points) > 200 else points.index
            points = points.groupby(bounds, observed=True).median().tolist()
            slopes = [(points[b] - points[a]) / (b - a) for a, b in combinations(range(len(points)), 2)]
            signs = sum((one > 0) - (one < 0) for one in slopes)
            found.append((median(slopes), signs))
        return found

    def distribution() -> Any:
        frame, found = pd.read_csv(path), []
        for name in ("id", *NUMBERS):
            values = frame[name]
            moments = values.count(), values.min(), values.max(), values.mean(), values.std(), values.skew()
            found.append((moments, values.nunique(), values.quantile([0.05, 0.25, 0.5, 0.75, 0.95])))
        texts = [(frame[name].count(), frame[name].value_counts().head(10)) for name in ("placed", "region")]
        return found, texts

    def correlation() -> Any:
        frame = pd.read_csv(path)[list(NUMBERS)].dropna()
        return frame.corr("pearson"), frame.corr("spearman")

    return {"anomaly": anomaly, "trend": trend, "distribution": distribution, "correlation": correlation}


def now() -> tuple[float, float]:
    """Return processor time and time."""
    return time.process_time(), time.perf_counter()


def since(began: tuple[float, float]) -> tuple[float, float]:
    return now()[0] - began[0], now()[1] - began[1]


async def measure(count: int) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "orders.csv")
        write_rows(path, count)
        app = App("Bench", server_id="bench.example", operator="Bench", contact="b@bench.example", methods=["ANALYZE"])
        app.data("orders", description="Orders", sensitivity="low", file=path, key=["id"])
        ours: dict[str, list[tuple[float, float]]] = {}
        theirs: dict[str, list[tuple[float, float]]] = {}
        async with bespeak.connect(app) as service:

            async def ask(kind: str) -> None:
                began = now()
                more: dict[str, Any] = {} if kind == "distribution" else {"columns": list(NUMBERS)}
                more |= {"time_column": "placed"} if kind == "trend" else {}
                given = {"target": "orders", "analysis_type": kind, **more}
                answer = await service.call("ANALYZE", "/", **given)
                assert answer, answer
                ours.setdefault(kind, []).append(since(began))

            for kind in ("anomaly", "trend", "distribution", "correlation"):
                await ask(kind)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            other = pandas_analyses(path)
            for _ in range(ROUNDS):
                for kind, one in other.items():
                    began = now()
                    await asyncio.to_thread(one)
                    theirs.setdefault(kind, []).append(since(began))
                    await ask(kind)
    rows, good = [["analysis", "bespeak CPU s", "pandas CPU s", "ratio", "bespeak s", "pandas s"]], True
    for kind in ours:
        (cpu, wall), (other_cpu, other_wall) = (list(map(min, zip(*one[kind], strict=True))) for one in (ours, theirs))
        good = FASTER.met(other_cpu / cpu) and good
        figures = (cpu, other_cpu, other_cpu / cpu, wall, other_wall)
        rows.append([kind, *(f"{figure:.2f}" for figure in figures)])
    print(table(rows))
    print(f"\n  {count:,} rows, best of {ROUNDS}, load {os.getloadavg()[0]:.1f}; peak of bespeak {peak:.0f} MB")
    return good


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)) else 1)
