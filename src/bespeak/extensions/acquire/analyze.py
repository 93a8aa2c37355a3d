"""ANALYZE: anomalies, trends, distributions and correlations in rows, by robust statistics (Tier 2 3.6).

DuckDB computes them in a database of the call. Files of data sets are read in place; other rows are streamed into a
file of the call. Columns have numbers there instead of names: `n3` has the numbers of column 3, `t3` its texts, flags
and dates, `o3` tells of other values. The table is `r`; the view `s` has the rows of the window, and their numbers `i`
and times `x`.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.documents.chart import bar_chart, line_chart
from bespeak.documents.table_files import (
    MissingLibraryError,
    load_library,
    open_duckdb,
    plain_cell,
    quote_name,
    quote_text,
)
from bespeak.extensions.data.collection import DataCollection, Row, find_named
from bespeak.extensions.data.query import DataQuery, instant
from bespeak.extensions.data.sources import Cancellable, FileSource, run_interruptible
from bespeak.runtime.answer import Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.concurrency import FairSemaphore, run_in_thread
from bespeak.runtime.handling import RefusedError, handler, invalid, invalid_time, refusal

_ANALYZE: Final = STANDARD["ANALYZE"]
_SECONDS: Final = 60.0
_MOST_ROWS: Final = 1_000_000
_MOST_COLUMNS: Final = 256
_MOST_BYTES: Final = 1 << 30  # of streamed rows
_LONGEST_TEXT: Final = 200  # characters by which texts are told apart
_LARGEST: Final = 1e100  # numbers beyond it count as other values: their cubes would not be numbers
_AT_ONCE: Final = 2
_LEAST: Final = 8  # values below which nothing is claimed
_TOP: Final = 20  # anomalies, and columns whose pairs are compared
_POINTS: Final = 200  # of a trend: its test compares all pairs of them
_OUTSIDE: Final = 0.1  # share of values outside from which on they are the tail of the distribution, not anomalies
_SHARES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)  # quantiles of a distribution
_FEW: Final = 0.05  # share of different values up to which these are counted first: there is less to sort
_KINDS: Final = {"numbers": "n", "texts": "t", "other": "o"}  # values that are counted, by the columns that have them
_EXACT: Final = 1 << 53
_turns: Final = FairSemaphore(_AT_ONCE, most=64, most_of_one=8)


class _Rows(NamedTuple):
    file: Path | None
    names: Sequence[str]
    select: str  # statement for n0, t0, o0, n1, ...
    parameters: Sequence[Any] = ()
    key: Sequence[str] = ()  # columns that identify a row: analysed only if they are named
    unchecked: Sequence[int] = ()  # columns of which some numbers may have to be other values


@handler
async def analyze(call: RoutedCall) -> Envelope:
    """Answer ANALYZE /. Too few values for a finding are a note, not a finding."""
    given, owner = call.input, call.agent_id or ""
    window = _read_window(given.get("time_range", {}))
    if not _turns.has_room(owner):
        raise refusal(_ANALYZE, "analysis-busy", "Too many analyses are waiting; try again later.", retry_after=5)
    async with _turns.take(owner):
        with TemporaryDirectory(prefix="bespeak-", ignore_cleanup_errors=True) as folder:
            try:
                async with asyncio.timeout(_SECONDS):
                    load_library("duckdb")
                    rows = await _find_rows(call, Path(folder))
                    return Envelope(await run_interruptible(_analyze, rows, Path(folder), given, window))
            except MissingLibraryError as error:
                raise refusal(_ANALYZE, "not-available", f"ANALYZE requires {error}.") from None
            except TimeoutError:
                message = f"The analysis took more than {_SECONDS:g} s; narrow it by a filter or `columns`."
                raise refusal(_ANALYZE, "analysis-timeout", message) from None


def _read_window(given: str | Mapping[str, str]) -> dict[str, float]:
    """Return the bounds of a window in seconds since 1970. A day as its end is in it."""
    if isinstance(given, str):
        start, slash, end = given.partition("/")
        given = {name: text for name, text in (("start", start), ("end", end)) if text not in ("", "..")}
        if not slash or not given:
            raise invalid_time("time_range", "must be two times in ISO 8601: 2026-11-01/2026-11-30.")
    found = {}
    for name, text in given.items():
        try:
            found[name] = instant(text).timestamp() + (86400.0 if name == "end" and len(text) == 10 else 0.0)
        except (ValueError, OverflowError):
            raise invalid_time("time_range", f"has the {name} {text!r}, which is not a time in ISO 8601.") from None
    if len(found) == 2 and found["start"] >= found["end"]:
        raise invalid_time("time_range", "ends before it starts.")
    return found


async def _find_rows(call: RoutedCall, folder: Path) -> _Rows:
    given, target = call.input, call.input["target"]
    timed = given.get("analysis_type", "trend") == "trend" or "time_range" in given
    # All columns, if one of times must be found among them.
    wanted = set(given["columns"]) | {given.get("time_column")} if "columns" in given else None
    wanted = None if timed and "time_column" not in given else wanted
    if isinstance(target, list):
        return await _spill(folder / "rows.jsonl", _one_batch(target), wanted)
    collection, filters = await find_named(call, _ANALYZE, target, "target")
    if not isinstance(collection, DataCollection):
        return await _spill(folder / "rows.jsonl", collection.batches(filters), wanted)
    source = collection.reader.source
    if not isinstance(source, FileSource):
        spilled = await _spill(folder / "rows.jsonl", collection.batches(filters), wanted)
        return spilled._replace(key=collection.key)
    unchecked = []
    columns = [column for column in collection.columns.values() if wanted is None or column.name in wanted]
    _check_width(len(columns))
    names = tuple(column.name for column in columns)
    query = DataQuery(limit=_MOST_ROWS, filters=tuple(filters), columns=names or tuple(collection.columns))
    statement, shown = source.select(query, collection.columns), []
    for at, column in enumerate(columns):
        value = quote_name(column.name)
        number = f"CAST({value} AS DOUBLE)"
        if column.kind in ("integer", "number"):
            shown += [f"{number} AS n{at}"]
            unchecked += [at] if column.kind == "number" else []
        elif column.is_comparable:
            text = f"CAST({value} AS VARCHAR)"  # mostly short, and to look for its characters takes longer
            cut = f"CASE WHEN strlen({text}) <= {_LONGEST_TEXT} THEN {text} ELSE left({text}, {_LONGEST_TEXT}) END"
            shown += [f"{value if column.kind == 'date' else cut} AS t{at}"]
        else:
            shown += [f"{value} IS NOT NULL AS o{at}"]
    select = f"SELECT {', '.join(shown) or 'NULL AS o'} FROM ({statement.unlimited})"
    return _Rows(source.path, names, select, statement.parameters, collection.key, unchecked)


async def _one_batch(rows: list[Row]) -> AsyncIterator[list[Row]]:
    yield rows


async def _spill(path: Path, batches: AsyncIterator[list[Row]], wanted: set[str | None] | None) -> _Rows:
    """Write rows to a file, in bounded memory. What a column has in each row decides where its values go."""
    positions: dict[str, int] = {}
    types: dict[str, str] = {}
    count = 0

    def write(rows: list[Row]) -> None:
        lines = []
        for row in rows:
            line: dict[str, Any] = {}
            for name, value in row.items():
                if value is not None and (wanted is None or name in wanted):
                    member, kind, plain = _place(positions.setdefault(name, len(positions)), value)
                    line[member], types[member] = plain, kind
            _check_width(len(positions))
            lines.append(line)
        file.write(msgspec.json.Encoder().encode_lines(lines))

    with path.open("wb") as file:
        async for batch in batches:
            count += len(batch)
            await run_in_thread(write, batch)
            if count > _MOST_ROWS or file.tell() > _MOST_BYTES:
                raise _too_many()
    columns = ", ".join(f"{name}: '{kind}'" for name, kind in (types or {"n0": "DOUBLE"}).items())
    form = f"format = 'newline_delimited', records = true, columns = {{{columns}}}"
    return _Rows(None, tuple(positions), f"SELECT * FROM read_json({quote_text(str(path))}, {form})")


def _place(at: int, value: Any) -> tuple[str, str, Any]:
    """Return the member, its type and the value under which a value is written."""
    if isinstance(value, str):
        return f"t{at}", "VARCHAR", value[:_LONGEST_TEXT]
    if isinstance(value, bool):
        return f"t{at}", "VARCHAR", "true" if value else "false"
    if isinstance(value, int | float) and abs(value) < _LARGEST:  # neither NaN nor infinity
        return f"n{at}", "DOUBLE", value if abs(value) < _EXACT else float(value)
    return f"o{at}", "BOOLEAN", True


def _check_width(count: int) -> None:
    if count > _MOST_COLUMNS:
        raise invalid("columns", f"must name the columns to analyse: there are more than {_MOST_COLUMNS}.")


def _too_many() -> RefusedError:
    message = f"More than {_MOST_ROWS:,} rows, or {_MOST_BYTES >> 30} GiB of them, are meant; narrow them by a filter."
    return refusal(_ANALYZE, "too-many-rows", message, field="/target", max_rows=_MOST_ROWS)


class _Finding(NamedTuple):
    columns: Sequence[str]
    values: Mapping[str, Any]
    confidence: float
    source: str  # what the confidence is computed from
    explanation: str
    points: Mapping[str, float]  # of a chart


def _analyze(
    rows: _Rows, folder: Path, given: Mapping[str, Any], window: Mapping[str, float], cancellable: Cancellable
) -> dict[str, Any]:
    duckdb = load_library("duckdb")
    try:
        with open_duckdb(rows.file, folder, threads=2) as database:

            def ask(sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
                with cancellable(database.interrupt):  # one statement: between two, an interruption would be lost
                    found: list[tuple[Any, ...]] = database.execute(sql, parameters).fetchall()
                    return found

            ask(f"CREATE TABLE r AS {rows.select}", *rows.parameters)
            for at in rows.unchecked:
                odd = f"NOT abs(n{at}) < {_LARGEST}"  # NaN too
                if ask(f"SELECT 1 FROM r WHERE {odd} LIMIT 1"):
                    ask(f"ALTER TABLE r ADD COLUMN o{at} BOOLEAN")
                    ask(f"UPDATE r SET o{at} = TRUE, n{at} = NULL WHERE {odd}")
            return _Analysis(ask, rows, given, window).answer()
    except duckdb.OutOfMemoryException:
        raise _too_many() from None
    except (duckdb.Error, OSError) as error:
        message = f"The rows cannot be read or analysed at the moment: {type(error).__name__}."
        raise refusal(_ANALYZE, "data-unavailable", message) from None


_Ask = Callable[..., list[tuple[Any, ...]]]


class _Analysis:
    def __init__(self, ask: _Ask, rows: _Rows, given: Mapping[str, Any], window: Mapping[str, float]) -> None:
        self._ask, self._names, self._given, self._window = ask, rows.names, given, window
        self._notes: list[str] = []
        self._grouped: set[int] = set()  # columns whose different values are counted
        self._physical = {name: kind for name, kind, *_ in ask("DESCRIBE r")}
        self._count_values("r")
        self._time = self._find_time()
        unknown = [name for name in given.get("columns", ()) if name not in rows.names]
        if unknown:
            raise invalid("columns", f"names {unknown[0][:80]!r}, of which no row has a value.")
        self._columns = [at for at, name in enumerate(rows.names) if name in given.get("columns", rows.names)]
        key = () if "columns" in given else rows.key
        self._numeric = [at for at in self._columns if self._counts[at]["numbers"] and rows.names[at] not in key]
        self.kind, self._reason = self._choose()
        if self.kind == "trend":
            self._numeric = [at for at in self._numeric if at != self._time]
        elif not window:
            self._time = None  # times do not matter
        self._view()

    def answer(self) -> dict[str, Any]:
        kind, reason = self.kind, self._reason
        if kind != "distribution" and len(self._numeric) < (2 if kind == "correlation" else 1):
            few = "two columns" if kind == "correlation" else "a column"
            member = "columns" if "columns" in self._given else "target"
            raise invalid(member, f"must have {few} of numbers for {kind}.")
        found = list(getattr(self, f"_find_{kind}")())
        told: dict[str, Any] = {"analysis_type": kind, "rows": self._rows, "findings": []}
        told["columns"] = [self._names[at] for at in (self._columns if kind == "distribution" else self._numeric)]
        told |= {"chosen_because": reason} if reason else {}
        told |= {"time_column": self._names[self._time]} if self._time is not None else {}
        for one in found:
            shown = {"kind": kind, "columns": one.columns, "values": one.values, "confidence_from": one.source}
            shown["confidence"] = math.floor(one.confidence * 10_000) / 10_000  # 1 only if nothing is left to doubt
            told["findings"].append(shown | ({"explanation": one.explanation} if self._given.get("explain") else {}))
        if "chart" in self._given and found and found[0].points:
            draw = line_chart if kind == "trend" else bar_chart
            told["chart"] = draw(found[0].points, f"{kind}: {', '.join(found[0].columns)}"[:200])
        return {**told, "notes": self._notes}

    def _count_values(self, table: str) -> None:
        sums = [f"count_if({name})" if name[0] == "o" else f"count({name})" for name in self._physical]
        [(self._rows, *found)] = self._ask(f"SELECT count(*), {', '.join(sums)} FROM {table}")
        if self._rows > _MOST_ROWS:
            raise _too_many()
        known = dict(zip(self._physical, found, strict=True))
        self._counts = [
            {kind: known.get(f"{letter}{at}", 0) for kind, letter in _KINDS.items()} for at in range(len(self._names))
        ]

    def _find_time(self) -> int | None:
        """Return the column of times that is named, or the only one; refuse if several are possible and one is due."""
        wanted, required = self._given.get("time_column"), bool(self._window)
        if wanted is not None and wanted not in self._names:
            raise invalid("time_column", f"names {wanted[:80]!r}, of which no row has a value.")
        if wanted is not None:
            return self._names.index(wanted)
        texts = [at for at, count in enumerate(self._counts) if count["texts"] and not count["numbers"]]
        found = []
        for at in texts:
            sample = f"(SELECT t{at} FROM r WHERE t{at} IS NOT NULL LIMIT 100)"
            [(read,)] = self._ask(f"SELECT bool_and(TRY_CAST(t{at} AS TIMESTAMPTZ) IS NOT NULL) FROM {sample}")
            found += [at] if read else []
        if len(found) != 1 and (required or self._given.get("analysis_type") == "trend"):
            names = ", ".join(self._names[at] for at in found)
            raise invalid("time_column", f"must name the column of times; {f'there are {names}' if found else 'none'}.")
        return found[0] if len(found) == 1 else None

    def _view(self) -> None:
        """Make `s`, with the time of each row, of the rows in the window."""
        kind, time, where = "VIEW", "NULL", []
        if self._time is not None:
            text, count = f"t{self._time}", self._counts[self._time]
            if count["numbers"] and not count["texts"] and not self._window:
                time = f"n{self._time}"  # a year, a step, or seconds
            elif self._physical.get(text) == "DATE":
                time = f"epoch({text})"
            else:
                kind, first = "TABLE", None  # to read texts again and again takes long
                if count["texts"]:
                    moment = f"TRY_CAST({text} AS TIMESTAMPTZ)"
                    time = f"CASE WHEN isfinite({moment}) THEN epoch({moment}) END"
                    [(first,)] = self._ask(f"SELECT any_value({text}) FILTER ({time} IS NULL) FROM r")
                if first is not None or count["numbers"] or not count["texts"]:
                    shown = f": {first[:80]!r} is not one" if first else ""
                    raise invalid("time_column", f"must have times in ISO 8601 only{shown}.")
            where += [f"x >= {self._window['start']!r}"] if "start" in self._window else []
            where += [f"x < {self._window['end']!r}"] if "end" in self._window else []
        kept = f" WHERE {' AND '.join(where)}" if where else ""
        self._ask(f"CREATE {kind} s AS SELECT * FROM (SELECT rowid AS i, *, {time} AS x FROM r){kept}")
        if kept:
            self._count_values("s")

    def _choose(self) -> tuple[str, str]:
        if "analysis_type" in self._given:
            return self._given["analysis_type"], ""
        if not self._numeric:
            return "distribution", "no column has numbers"
        if self._time is None:
            return "anomaly", "there are numbers, and not one column of times"
        name = self._names[self._time]
        shown = f", {name}" if name.isprintable() and len(name) <= _LONGEST_TEXT else ""  # of one line
        return "trend", f"there are numbers, and one column of times{shown}"

    def _note(self, at: int, text: str) -> None:
        self._notes.append(f"{self._names[at]}: {text}.")

    def _enough(self, at: int, what: str) -> bool:
        count: int = self._counts[at]["numbers"]
        if count < _LEAST:
            self._note(at, f"{count} numbers are too few for {what}; at least {_LEAST} are needed")
        return count >= _LEAST

    def _count_numbers(self, at: int) -> tuple[float, float, float, int]:
        """Make `v3` of column 3, with values `v` and how often each comes, `c`, if there are few different ones.

        Return the least, the greatest, the mean and about how many there are.
        """
        asked = f"min(n{at}), max(n{at}), avg(n{at}), approx_count_distinct(n{at})"
        [(least, most, mean, different)] = self._ask(f"SELECT {asked} FROM s")
        self._grouped |= {at} if different <= self._counts[at]["numbers"] * _FEW else set()
        made, count, by = ("TABLE", "count(*)", "GROUP BY 1") if at in self._grouped else ("VIEW", "1", "")
        self._ask(f"CREATE {made} v{at} AS SELECT n{at} AS v, {count} AS c FROM s WHERE n{at} IS NOT NULL {by}")
        return least, most, mean, different

    def _quantiles(self, at: int, value: str, shares: Sequence[float]) -> list[float]:
        """Return quantiles, between two values if need be, of an expression of the values `v` of a column."""
        if at not in self._grouped:
            [(found,)] = self._ask(f"SELECT quantile_cont({value}, {list(shares)}) FROM v{at}")
            return list(found)
        ranks = [share * (self._counts[at]["numbers"] - 1) for share in shares]
        asked = (f"min(v) FILTER (upto > {near(rank)})" for rank in ranks for near in (math.floor, math.ceil))
        counted = f"SELECT {value} AS v, sum(c) AS c FROM v{at} GROUP BY 1"
        sql = f"SELECT {', '.join(asked)} FROM (SELECT v, sum(c) OVER (ORDER BY v) AS upto FROM ({counted}))"
        [around] = self._ask(sql)
        places = zip(ranks, around[::2], around[1::2], strict=True)
        return [low + (high - low) * (rank % 1) for rank, low, high in places]

    def _spread(self, at: int, value: str) -> tuple[float, float, str, tuple[float, float]]:
        """Return the median, a robust standard deviation, what it is from, and the other quartiles."""
        low, middle, high = self._quantiles(at, value, (0.25, 0.5, 0.75))
        [mad] = self._quantiles(at, f"abs({value} - ({middle!r}))", (0.5,))
        name, scale = ("MAD", mad * 1.4826) if mad else ("IQR", (high - low) / 1.349)
        return middle, scale, name, (low, high)

    def _find_anomaly(self) -> Iterator[_Finding]:
        threshold = 6.0 - 5.0 * self._given.get("sensitivity", 0.5)
        for at in self._numeric:
            if not self._enough(at, "anomalies"):
                continue
            value, name, count = f"n{at}", self._names[at], self._counts[at]["numbers"]
            least, *_ = self._count_numbers(at)
            middle, scale, base, (low, high) = self._spread(at, "v")
            on = "values"
            if least > 0 and _skew(low, middle, high) > max(0.1, abs(_skew(*map(math.log, (low, middle, high))))):
                on, value = "logarithms", f"ln({value})"
                middle, scale, base, _ = self._spread(at, "ln(v)")
            if not scale:
                self._note(at, "more than three quarters of the values are the same; no spread to judge by")
                continue
            score = f"({value} - ({middle!r})) / {scale!r}"
            [(outside,)] = self._ask(f"SELECT count(*) FROM s WHERE abs({score}) > {threshold!r}")
            chance, share = count * math.erfc(threshold / math.sqrt(2)), outside / count
            confidence = max(1 - chance / outside, 0) * max(1 - share / _OUTSIDE, 0) if outside else 0.0
            said = f"{outside} of {count} {on} are further than {threshold:g} deviations ({base}) from the median"
            if confidence <= 0:
                why = f"; chance alone gives {chance:.2g}, and from {_OUTSIDE:.0%} on it is a tail" if outside else ""
                self._note(at, f"no anomalies: {said}{why}")
                continue
            others = [one for one in range(len(self._names)) if one != at][:6]
            shown = [f"{letter}{one}" for one in others for letter in "nt" if f"{letter}{one}" in self._physical]
            found = self._ask(
                f"SELECT {', '.join(['i', f'n{at}', f'{score} AS score', *shown])} FROM s "
                f"WHERE abs(score) > {threshold!r} ORDER BY abs(score) DESC, i LIMIT {_TOP}"
            )
            rows = []
            for i, number, far, *rest in found:
                row = {"row": i, "value": plain_cell(number), "score": round(far, 2)}
                named = zip((self._names[int(one[1:])] for one in shown), map(plain_cell, rest), strict=True)
                rows.append({**row, "item": {key: cell for key, cell in named if cell is not None}})
            centre = math.exp(middle) if on == "logarithms" else middle
            values = {"count": outside, "share": share, "threshold": threshold, "median": centre, "deviation": scale}
            values |= {"deviation_from": base, "judged_on": on, "expected_by_chance": chance, "rows": rows}
            points = {f"row {i}": far for i, _, far, *_ in found}
            source = f"(1 - expected by chance / found) x (1 - share / {_OUTSIDE:g}), chance by a normal distribution"
            text = f"{said}, {centre:.6g}; a normal distribution would have {chance:.2g} there."
            yield _Finding([name], values, confidence, source, f"{name}: {text}", points)

    def _find_trend(self) -> Iterator[_Finding]:
        assert self._time is not None
        dated = bool(self._counts[self._time]["texts"])
        [(times, first, last)] = self._ask("SELECT count(DISTINCT x), min(x), max(x) FROM s")
        for at in self._numeric:
            if not self._enough(at, "a trend"):
                continue
            name, known = self._names[at], f"(SELECT x, n{at} AS y FROM s WHERE x IS NOT NULL AND n{at} IS NOT NULL)"
            part = f"least(floor((x - {first!r}) / {last - first!r} * {_POINTS}), {_POINTS - 1})"
            by = "x" if times <= _POINTS else part
            at_time = "any_value(x)" if by == "x" else "avg(x)"
            label = f"CAST({f'to_timestamp({at_time})' if dated else at_time} AS VARCHAR)"
            found = self._ask(f"SELECT {at_time}, median(y), {label} FROM {known} GROUP BY {by} ORDER BY 1")
            if len(found) < _LEAST:
                self._note(at, f"{len(found)} points in time are too few for a trend")
                continue
            slope, tau, p = _test_trend([(x, y) for x, y, _ in found])
            slope *= 86400 if dated else 1
            unit = "per day" if dated else f"per 1 of {self._names[self._time]}"
            way = ("rising" if slope > 0 else "falling" if slope < 0 else "level") if p < 0.05 else "none found"
            values = {"direction": way, "slope": slope, "slope_unit": unit, "tau": tau, "p_value": p}
            values |= {"points": len(found), "each_point": f"median of a {'time' if by == 'x' else 'part of the time'}"}
            source = "1 - p of the Mann-Kendall test, which takes the points for independent of each other"
            text = f"{name}: {way}, {slope:.4g} {unit} (Theil-Sen) over {len(found)} medians; tau {tau:.2f}, p {p:.2g}."
            points = {label: y for _, y, label in found}
            yield _Finding([name], values, 1 - p, source, text, points)

    def _find_distribution(self) -> Iterator[_Finding]:
        for at in self._columns:
            counts, name = self._counts[at], self._names[at]
            filled = sum(counts.values())
            values: dict[str, Any] = {**counts, "missing": self._rows - filled}
            points: dict[str, float] = {}
            text = f"{name}: {filled} of {self._rows} rows have a value"
            if counts["numbers"]:
                least, most, mean, different = self._count_numbers(at)
                far = f"(SELECT v - ({mean!r}) AS d, c FROM v{at})"
                [(squares, cubes)] = self._ask(f"SELECT sum(c * d * d), sum(c * d * d * d) FROM {far}")
                deviation, skew = _shape(counts["numbers"], squares, cubes)
                quantiles = self._quantiles(at, "v", _SHARES)
                values |= {"min": least, "max": most, "mean": mean, "standard_deviation": deviation, "skew": skew}
                values |= {"distinct_estimate": different}
                values["quantiles"] = {f"{share:g}": value for share, value in zip(_SHARES, quantiles, strict=True)}
                points = {"min": values["min"], **values["quantiles"], "max": values["max"]}
                text += f"; the median is {quantiles[2]:.6g}, 90 % are from {quantiles[0]:.6g} to {quantiles[4]:.6g}"
            if counts["texts"]:
                top = self._ask(
                    f"SELECT CAST(v AS VARCHAR), n, sum(1) OVER () FROM (SELECT t{at} AS v, count(*) AS n FROM s "
                    f"WHERE t{at} IS NOT NULL GROUP BY 1) ORDER BY 2 DESC, 1 LIMIT 10"
                )
                values["top"] = [{"value": value, "count": count} for value, count, _ in top]
                values["distinct_texts"] = int(top[0][2])
                points = points or {value: count for value, count, _ in top}
                text += f"; the most frequent text is {top[0][0][:80]!r}, {top[0][1]} times"
            if 0 < filled < _LEAST:
                self._note(at, f"{filled} values say little of a distribution")
            share = filled / self._rows if self._rows else 0.0
            yield _Finding([name], values, share, "share of the rows that have a value", f"{text}.", points)

    def _find_correlation(self) -> Iterator[_Finding]:
        usable: list[int] = []
        for at in self._numeric:
            [(least, most)] = self._ask(f"SELECT min(n{at}), max(n{at}) FROM s")
            if least == most or self._counts[at]["numbers"] * 2 < self._rows:
                self._note(at, "left out: it is constant, or half of the rows lack a number")
            elif len(usable) == _TOP:
                self._note(at, f"left out: only {_TOP} columns are compared; name them")
            else:
                usable.append(at)
        whole = " AND ".join(f"n{at} IS NOT NULL" for at in usable) or "FALSE"
        columns = ", ".join(f"n{at}" for at in usable) or "i"
        self._ask(f"CREATE VIEW c AS SELECT {columns} FROM s WHERE {whole}")
        [(count,)] = self._ask("SELECT count(*) FROM c")
        pairs = list(combinations(usable, 2))
        if count < _LEAST or not pairs:
            self._notes.append(f"{count} rows have all of these numbers; at least {_LEAST} are needed.")
            return
        ranks = " ".join(
            # The mean rank of equal values; the rows are not sorted, only their different values.
            f"JOIN (SELECT n{at}, sum(c) OVER (ORDER BY n{at}) - (c - 1) / 2 AS r{at} "
            f"FROM (SELECT n{at}, count(*) AS c FROM c GROUP BY 1)) USING (n{at})"
            for at in usable
        )
        asked = ", ".join(f"corr({letter}{one}, {letter}{other})" for one, other in pairs for letter in "nr")
        [found] = self._ask(f"SELECT {asked} FROM c {ranks}")
        judged = zip(pairs, found[::2], found[1::2], strict=True)
        known = [one for one in judged if all(r is not None and math.isfinite(r) for r in one[1:])]
        for (one, other), pearson, spearman in sorted(known, key=lambda found: -abs(found[2])):
            p, interval = _test_correlation(spearman, count, len(pairs))
            names = [self._names[one], self._names[other]]
            values = {
                "pearson": pearson,
                "spearman": spearman,
                "spearman_interval_95": interval,
                "n": count,
                "p_value": p,
            }
            source = f"1 - p of Spearman's coefficient being 0, times the {len(pairs)} pairs that were compared"
            text = f"Spearman {spearman:.3f} ({interval[0]:.3f} to {interval[1]:.3f}), Pearson {pearson:.3f}, n {count}"
            points = {f"{self._names[a]} and {self._names[b]}": r for (a, b), _, r in known[:_TOP]}
            yield _Finding(names, values, 1 - p, source, f"{' and '.join(names)}: {text}, p {p:.2g}.", points)


def _shape(count: int, squares: float, cubes: float) -> tuple[float, float | None]:
    """Return standard deviation and skew of a sample, from sums of squares and cubes of distances from the mean."""
    deviation, scale = math.sqrt(squares / max(count - 1, 1)), (squares / count) ** 1.5
    known = count > 2 and scale > 0
    return deviation, math.sqrt(count * (count - 1)) / (count - 2) * cubes / count / scale if known else None


def _skew(low: float, middle: float, high: float) -> float:
    """Return Bowley's skew of quartiles: 0 if the median is in the middle."""
    return (high + low - 2 * middle) / (high - low) if high > low else 0.0


def _test_trend(pairs: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Return the slope of Theil and Sen, Kendall's tau, and p of the test of Mann and Kendall."""
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(pairs, 2) if b[0] > a[0]]
    signs, n = sum((one > 0) - (one < 0) for one in slopes), len(pairs)
    ties = Counter(y for _, y in pairs).values()
    variance = (n * (n - 1) * (2 * n + 5) - sum(t * (t - 1) * (2 * t + 5) for t in ties)) / 18
    far = max(abs(signs) - 1, 0) / math.sqrt(variance) if variance else 0.0
    return median(slopes), signs / len(slopes), math.erfc(far / math.sqrt(2))


def _test_correlation(r: float, n: int, pairs: int) -> tuple[float, list[float]]:
    """Return p by the transformation of Fisher, corrected for the number of pairs, and the interval of 95 %."""
    z, error = math.atanh(max(min(r, 1 - 1e-15), 1e-15 - 1)), 1.03 / math.sqrt(n - 3)
    p = min(math.erfc(abs(z) / error / math.sqrt(2)) * pairs, 1.0)
    return p, [math.tanh(z - 1.96 * error), math.tanh(z + 1.96 * error)]
