"""ANALYZE (Tier 2 3.6): findings with figures that can be checked by hand, and no findings where there are none."""

from __future__ import annotations

import csv
import random
import statistics
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.extensions.acquire.test_collections import manifest, put
from tests.extensions.acquire.test_methods import code, good
from tests.messaging import BOB
from tests.stateful import StatefulBench, keeping

from bespeak.contract.data_set import DataSet
from bespeak.contract.service import DataManifest
from bespeak.extensions.acquire import analyze

pytestmark = pytest.mark.anyio
SERVICE = {"methods": ("ANALYZE", "SCAN")}


def noise(count: int, seed: int = 7) -> list[float]:
    drawn = random.Random(seed)
    return [round(drawn.gauss(100, 10), 3) for _ in range(count)]


async def find(bench: StatefulBench, target: Any, kind: str, **given: Any) -> list[dict[str, Any]]:
    answer = await good(bench, "ANALYZE", target=target, analysis_type=kind, **given)
    assert answer["analysis_type"] == kind
    found: list[dict[str, Any]] = answer["findings"]
    return found


@pytest.mark.requirement("METHODS-3.6-1", "METHODS-3.6-2", "METHODS-3.6-4", "METHODS-3.6-6")
async def test_anomalies_are_the_rows_far_from_the_median_and_sensitivity_moves_the_bound() -> None:
    rows = [{"who": f"c-{at}", "amount": one} for at, one in enumerate(noise(500))]
    rows[42]["amount"], rows[99]["amount"] = 900.0, 145.0
    async with keeping(**SERVICE) as bench:
        [found] = await find(bench, rows, "anomaly")
        assert [(one["row"], one["item"]) for one in found["values"]["rows"]] == [
            (42, {"who": "c-42"}),
            (99, {"who": "c-99"}),
        ]
        assert (found["values"]["count"], found["values"]["threshold"]) == (2, 3.5)
        assert found["values"]["rows"][0]["score"] == pytest.approx((900 - 100) / 10, rel=0.1)
        # By chance 500 x 0.000465 values of a normal distribution are outside.
        assert found["confidence"] == pytest.approx((1 - 0.2326 / 2) * (1 - 0.004 / 0.1), abs=0.001)
        [found] = await find(bench, rows, "anomaly", sensitivity=0)
        assert [one["row"] for one in found["values"]["rows"]] == [42]
        answer = await good(bench, "ANALYZE", target=rows, analysis_type="anomaly", sensitivity=1)
        assert (answer["findings"], "a tail" in answer["notes"][0]) == ([], True)


async def test_noise_heavy_tails_constants_and_small_samples_are_no_anomalies() -> None:
    drawn = random.Random(3)
    rows = [
        {"noise": one, "tail": drawn.gauss(0, 1) / abs(drawn.gauss(0, 1) + 1e-9), "same": 5, "amount": 2 ** (one / 8)}
        for one in noise(400)
    ]
    async with keeping(**SERVICE) as bench:
        answer = await good(bench, "ANALYZE", target=rows, analysis_type="anomaly")
        assert answer["findings"] == []
        assert [note.split(":")[0] for note in answer["notes"]] == ["noise", "tail", "same", "amount"]
        assert "no spread" in answer["notes"][2]
        assert "logarithms" in answer["notes"][3]
        few = await good(bench, "ANALYZE", target=[{"n": 1}, {"n": 2}, {"n": 999}], analysis_type="anomaly")
        assert (few["findings"], "too few" in few["notes"][0]) == ([], True)
        mostly = [{"n": 5}] * 60 + [{"n": one} for one in (6, 7, 8, 9) * 10] + [{"n": 900}]
        [found] = await find(bench, mostly, "anomaly")
        assert (found["values"]["deviation_from"], found["values"]["rows"][0]["value"]) == ("IQR", 900)


@pytest.mark.requirement("METHODS-3.6-3", "METHODS-3.6-5")
async def test_a_trend_is_tested_within_the_window_and_explained() -> None:
    days = [f"2026-{month:02}-{day:02}" for month in (1, 2, 3) for day in range(1, 29)]
    rows = [{"day": day, "sold": 3 * at + one / 10} for at, (day, one) in enumerate(zip(days, noise(84), strict=True))]
    rows += [{"day": "2027-01-01", "sold": -9000}, {"day": None, "sold": 1}]
    async with keeping(**SERVICE) as bench:
        [found] = await find(bench, rows, "trend", time_range="2026-01-01/2026-01-28", explain=True, chart="svg")
        values = found["values"]
        assert (values["direction"], values["slope_unit"], values["points"]) == ("rising", "per day", 28)
        assert values["slope"] == pytest.approx(3, abs=0.1)
        assert found["confidence"] == pytest.approx(1 - values["p_value"], abs=0.0001)
        assert "sold: rising, 3" in found["explanation"]
        answer = await good(bench, "ANALYZE", target=rows, time_range={"end": "2026-03-28"}, chart="svg")
        assert (answer["analysis_type"], answer["time_column"], answer["rows"]) == ("trend", "day", 84)
        assert "one column of times, day" in answer["chosen_because"]
        rows = [{"x" * 2000: f"2026-01-{day:02}", "n": day} for day in range(1, 20)]
        assert (await good(bench, "ANALYZE", target=rows))["chosen_because"].endswith("one column of times")
        assert answer["chart"].startswith("<svg")
        assert "explanation" not in answer["findings"][0]
        still = [{"day": day, "n": one} for day, one in zip(days, noise(84), strict=True)]
        [found] = await find(bench, still, "trend")
        assert (found["values"]["direction"], found["confidence"] < 0.95) == ("none found", True)
        [found] = await find(
            bench, [{"year": 1900 + at, "n": at * at} for at in range(400)], "trend", time_column="year"
        )
        assert (found["values"]["direction"], found["values"]["points"]) == ("rising", 200)


async def test_a_distribution_counts_types_and_missing_values_and_names_the_top() -> None:
    rows: list[dict[str, Any]] = [{"n": at, "s": "a" if at % 3 else "b", "x": None} for at in range(1, 100)]
    rows += [{"n": "text", "s": True, "big": 10**300, "deep": {"a": [1]}}]
    async with keeping(**SERVICE) as bench:
        found = {one["columns"][0]: one for one in await find(bench, rows, "distribution", explain=True)}
        number = found["n"]["values"]
        assert (number["numbers"], number["texts"], number["other"], number["missing"]) == (99, 1, 0, 0)
        assert (number["min"], number["max"], number["mean"], number["skew"]) == (1, 99, 50, pytest.approx(0, abs=1e-9))
        assert number["quantiles"] == {"0.05": 5.9, "0.25": 25.5, "0.5": 50, "0.75": 74.5, "0.95": 94.1}
        text = found["s"]["values"]
        assert text["top"] == [{"value": "a", "count": 66}, {"value": "b", "count": 33}, {"value": "true", "count": 1}]
        assert (found["big"]["values"]["other"], found["deep"]["values"]["other"]) == (1, 1)
        assert (found["deep"]["values"]["missing"], found["deep"]["confidence"]) == (99, 0.01)
        assert "x" not in found
        assert found["n"]["explanation"].startswith("n: 100 of 100 rows have a value; the median is 50")


async def test_correlations_have_both_coefficients_an_interval_and_a_p_for_all_pairs() -> None:
    rows = [{"a": one, "b": one**3, "c": other, "k": 1} for one, other in zip(noise(200), noise(200, 8), strict=True)]
    rows += [{"a": 1}]
    async with keeping(**SERVICE) as bench:
        answer = await good(bench, "ANALYZE", target=rows, analysis_type="correlation", chart="svg")
        first, *others = answer["findings"]
        assert (first["columns"], first["values"]["n"]) == (["a", "b"], 200)
        assert (first["values"]["spearman"], first["confidence"]) == (pytest.approx(1), 1)
        assert 0.9 < first["values"]["pearson"] < 1
        for one in others:
            low, high = one["values"]["spearman_interval_95"]
            assert low < 0 < high
            assert one["values"]["p_value"] > 0.5
            assert one["confidence"] == pytest.approx(1 - one["values"]["p_value"], abs=0.0001)
        assert answer["notes"][0].startswith("k: left out")
        ties = [{"a": one, "b": 10 - other} for one, other in [(1, 1), (1, 2), (2, 2), (3, 3)] * 3]
        [found] = await find(bench, ties, "correlation")
        assert found["values"]["spearman"] == pytest.approx(-0.8333333)
        few = await good(bench, "ANALYZE", target=rows[:5], analysis_type="correlation")
        assert (few["findings"], few["notes"][-1]) == ([], "5 rows have all of these numbers; at least 8 are needed.")


@pytest.mark.parametrize("kind", ["csv", "parquet", "sqlite", "function"])
async def test_files_are_read_in_place_and_other_sources_in_batches_with_one_answer(kind: str, tmp_path: Path) -> None:
    async with keeping(**SERVICE, data_manifest=manifest(tmp_path, kind)) as bench:
        answer = await good(bench, "ANALYZE", target="ledger", analysis_type="distribution")
        assert answer["columns"] == ["id", "account", "amount", "booked", "changed_at", "memo", "pending"]
        found = {one["columns"][0]: one["values"] for one in answer["findings"]}
        assert (found["amount"]["numbers"], found["amount"]["missing"], found["amount"]["min"]) == (5, 1, -3)
        assert found["account"]["top"][0] == {"value": "a-1", "count": 4}
        assert found["pending"]["top"] == [{"value": "false", "count": 4}, {"value": "true", "count": 1}]
        few = {"collection": "ledger", "filter": {"account": "a-1", "amount": {"min": 0}}}
        window = {"time_range": "2026-01-01/2026-01-03", "time_column": "changed_at", "columns": ["amount"]}
        answer = await good(bench, "ANALYZE", target=few, analysis_type="distribution", **window)
        assert (answer["rows"], answer["findings"][0]["values"]["max"]) == (2, 10.5)
        assert await code(bench, "ANALYZE", target="ledger", analysis_type="trend") == (422, "invalid-time-column")


@pytest.mark.requirement("METHODS-3.6-8")
async def test_counting_different_values_first_changes_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"n": round(one), "skewed": 2.0 ** round(one / 8), "gap": None if one > 105 else -1} for one in noise(501)]
    rows[7]["skewed"] = 1e12
    told = []
    async with keeping(**SERVICE) as bench:
        for few in (0.0, 1.0):
            monkeypatch.setattr(analyze, "_FEW", few)
            found = [*await find(bench, rows, "distribution"), *await find(bench, rows, "anomaly")]
            told.append([one["values"] for one in found])
    assert len(told[0]) == 4
    quantiles = [told[1][0]["quantiles"][share] for share in ("0.25", "0.5", "0.75")]
    for one, other in zip(*told, strict=True):
        assert one.pop("quantiles", {}) == pytest.approx(other.pop("quantiles", {}))
        assert (one.pop("rows", 0), one) == (other.pop("rows", 0), pytest.approx(other))
    values = [row["n"] for row in rows]
    figures, mean, deviation = told[1][0], statistics.fmean(values), statistics.stdev(values)
    assert figures["standard_deviation"] == pytest.approx(deviation)
    assert quantiles == statistics.quantiles(values, method="inclusive")
    assert figures["skew"] == pytest.approx(501 / 500 / 499 * sum(((one - mean) / deviation) ** 3 for one in values))


async def test_what_cannot_be_analysed_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"day": f"2026-01-{at:02}", "n": at, "s": "x"} for at in range(1, 20)]
    bad = [*rows, {"day": "soon", "n": 1}]
    asked: list[tuple[dict[str, Any], tuple[int, str]]] = [
        ({"target": rows, "columns": ["s"], "analysis_type": "anomaly"}, (422, "invalid-columns")),
        ({"target": [{"s": "x"}], "analysis_type": "trend"}, (422, "invalid-time-column")),
        ({"target": rows, "columns": ["nothing"]}, (422, "invalid-columns")),
        ({"target": rows, "time_column": "nothing"}, (422, "invalid-time-column")),
        ({"target": bad, "time_column": "day"}, (422, "invalid-time-column")),
        ({"target": rows, "time_column": "s"}, (422, "invalid-time-column")),
        ({"target": rows, "time_range": "soon"}, (400, "invalid-time")),
        ({"target": rows, "time_range": "soon/later"}, (400, "invalid-time")),
        ({"target": rows, "time_range": "2026-02-01/2026-01-01"}, (400, "invalid-time")),
        ({"target": [{"n": 1}], "analysis_type": "correlation"}, (422, "invalid-target")),
        ({"target": [{f"c{at}": at for at in range(10_000)}]}, (422, "invalid-columns")),
        ({"target": "nothing"}, (404, "collection-not-found")),
        ({"target": {"collection": "ledger", "filter": {"nothing": 1}}}, (422, "invalid-target")),
    ]
    async with keeping(**SERVICE, data_manifest=manifest(tmp_path, "csv", sensitivity="high")) as bench:
        for given, refused in asked:
            authority = "data:ledger" if isinstance(given["target"], dict) else ""
            assert await code(bench, "ANALYZE", authority=authority, **given) == refused, given
        await put(bench.store, {"id": "1", "n": 1}, collection="ledger")
        assert await code(bench, "ANALYZE", agent=BOB, target="ledger") == (404, "collection-not-found")
        monkeypatch.setattr(analyze, "_MOST_ROWS", 5)
        assert await code(bench, "ANALYZE", target=rows) == (422, "too-many-rows")
        assert await code(bench, "ANALYZE", target="data:ledger", authority="data:ledger") == (422, "too-many-rows")
        monkeypatch.undo()
        (tmp_path / "ledger.csv").unlink()
        given = {"target": "data:ledger", "authority": "data:ledger"}
        assert await code(bench, "ANALYZE", **given) == (503, "data-unavailable")
        monkeypatch.setattr(analyze, "_SECONDS", 0.0)
        assert await code(bench, "ANALYZE", target=rows) == (503, "analysis-timeout")
        monkeypatch.undo()
        monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
        assert await code(bench, "ANALYZE", target=rows) == (503, "not-available")


async def test_odd_names_and_values_are_only_data(tmp_path: Path) -> None:
    name = "a\"b'; DROP TABLE r; --"
    rows: list[dict[str, Any]] = [{name: at, "A": at, "a": str(at), "": 1 << 63} for at in range(20)]
    rows += [{name: {"x": [1]}, "A": -(1 << 62), "a": "\"'\\\n\u20ac\x00", "": 1.5}, {}]
    async with keeping(**SERVICE) as bench:
        for kind in ("anomaly", "distribution", "correlation"):
            await find(bench, rows, kind, explain=True, chart="svg")
        for target in ([], [{}], [{"a": None}], [{"a": 1}]):
            answer = await good(bench, "ANALYZE", target=target)
            assert answer["analysis_type"] in ("distribution", "anomaly")
    path = tmp_path / "odd.parquet"
    quoted = name.replace('"', '""')
    duckdb.sql(f"SELECT i AS \"{quoted}\", 'nan'::DOUBLE AS n, [i] AS l FROM range(9) t(i)").write_parquet(str(path))
    data = DataManifest(available_data=(DataSet(name="odd", sensitivity="low", file=path),))
    async with keeping(**SERVICE, data_manifest=data) as bench:
        found = {one["columns"][0]: one["values"] for one in await find(bench, "odd", "distribution")}
        assert (found[name]["max"], found["n"]["other"], found["l"]["other"]) == (8, 9, 9)


async def test_a_cell_that_changes_its_type_far_down_a_file_is_an_answer_not_a_wrong_one(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "n"])
        writer.writerows((at, at % 7) for at in range(60_000))
    data = DataManifest(available_data=(DataSet(name="long", sensitivity="low", file=path),))
    async with keeping(**SERVICE, data_manifest=data) as bench:
        answer = await good(bench, "ANALYZE", target="long", analysis_type="distribution")
        assert answer["findings"][1]["values"]["numbers"] == 60_000
        with path.open("a") as file:
            file.write("60000,seven\n")
        assert await code(bench, "ANALYZE", target="long", analysis_type="distribution") == (503, "data-unavailable")
