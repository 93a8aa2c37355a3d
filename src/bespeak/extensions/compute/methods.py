"""FILTER, VALIDATE, RANK, CALCULATE and EVALUATE: results that rules and arithmetic give (Tier 2 4)."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from bespeak.contract.participant import ENTITY
from bespeak.contract.schema.validation import Validator, Violation, compile_schema
from bespeak.contract.standard.definition import StandardMethod
from bespeak.contract.standard.methods import STANDARD
from bespeak.documents.data_formats import MEDIA_TYPES, FormatError, write_data
from bespeak.documents.table_files import PARQUET, MissingLibraryError, write_parquet
from bespeak.extensions.acquire.store import split_words
from bespeak.extensions.compute.formula import FormulaError, compute, read_number, round_to, write_number
from bespeak.extensions.data.collection import Row, meets, read_filters, read_rows, value_of
from bespeak.extensions.payments.settings import places_of
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.answer import Envelope
from bespeak.runtime.call import RoutedCall, find_visible, not_available
from bespeak.runtime.concurrency import compute_in_thread, run_in_thread
from bespeak.runtime.expressions.pool import UNAVAILABLE, ExpressionFault, find_missing
from bespeak.runtime.handling import RefusedError, handler, invalid, refusal, to_json

_FILTER, _VALIDATE, _RANK, _CALCULATE, _EVALUATE = (
    STANDARD[name] for name in ("FILTER", "VALIDATE", "RANK", "CALCULATE", "EVALUATE")
)
_MOST_FINDINGS: Final = 200
_MOST_RULES: Final = 100
_RANKED: Final = 10_000  # items of one answer


@handler
async def filter_rows(call: RoutedCall) -> Envelope:
    """Answer FILTER /. Rows for which an expression has no value are left out, and counted."""
    given, criteria = call.input, call.input["criteria"]
    rows = await read_rows(call, _FILTER, given["data"], "data")
    failed, first = 0, None
    if isinstance(criteria, str):
        values = await evaluate_rows(call, _FILTER, criteria, rows, "criteria")
        kept = [row for row, (value, _) in zip(rows, values, strict=True) if value is True]
        reasons = [why or f"it is {value!r:.40}, not true or false" for value, why in values if type(value) is not bool]
        failed, first = len(reasons), next(iter(reasons), None)
    else:
        filters = read_filters(criteria, "criteria")
        kept = await compute_in_thread(call.agent_id, lambda: [row for row in rows if meets(row, filters)])
    told = await run_in_thread(write_answer, _FILTER, kept, given.get("output_format", "json"), "rows")
    told |= {"count": len(kept), "examined": len(rows), "failed": failed}
    return Envelope({**told, "first_failure": first} if first else told)


def write_answer(method: StandardMethod, data: Any, form: str, plain: str) -> dict[str, Any]:
    """Return the members of an answer that has data: as they are under a name for JSON, else as a text."""
    if form == "json":
        return {plain: data, "media_type": MEDIA_TYPES[form]}
    try:
        if form == "parquet":
            written = b64encode(write_parquet(data)).decode()
            return {"content": written, "encoding": "base64", "media_type": PARQUET}
        return {"content": write_data(data, form), "media_type": MEDIA_TYPES[form]}
    except MissingLibraryError as error:
        raise RefusedError(not_available(method.name, str(error))) from None
    except FormatError as error:
        message = f"The result cannot be written as {form}: {error}."
        raise refusal(method, "not-expressible", message) from None


async def evaluate_rows(
    call: RoutedCall, method: StandardMethod, text: str, rows: Sequence[Row], member: str
) -> list[tuple[Any, str | None]]:
    """Evaluate an expression of the caller for each row, in the process for expressions. Raises RefusedError."""
    missing = find_missing()
    if missing is not None:
        raise RefusedError(not_available(method.name, missing))
    found = await call.server.expressions.evaluate_rows(text, rows, call.agent_id)
    if not isinstance(found, ExpressionFault):
        return found
    codes = {"invalid-expression": "invalid-expression", "expressions-busy": "expressions-busy"}
    if found.code == UNAVAILABLE:
        raise RefusedError(not_available(method.name, found.message))
    message = f"`{member}` cannot be evaluated: {found.message}."
    message += f" {_columns(rows)}" if found.code == "invalid-expression" else ""
    raise refusal(method, codes.get(found.code, "expression-failed"), message, field=f"/{member}")


@handler
async def validate(call: RoutedCall) -> Envelope:
    """Answer VALIDATE /: what is wrong is a result, not a refusal."""
    target, schema, strict = call.input["target"], call.input.get("schema"), call.input.get("strict", False)
    warnings: list[dict[str, Any]] = []
    if schema is None:
        errors, against = _check_action(call, target)
    elif isinstance(schema, Mapping) and set(schema) == {"rules"}:
        errors, warnings = await _check_rules(call, target, schema["rules"])
        against = "rules"
    else:
        validator, against = _find_schema(call, schema)
        errors = findings(await run_in_thread(validator.violations, target))
    valid = not errors and not (strict and warnings)
    return Envelope({"valid": valid, "errors": errors, "warnings": warnings, "checked_against": against})


def findings(violations: Sequence[Violation]) -> list[dict[str, Any]]:
    return [
        {"pointer": one.pointer, "keyword": one.keyword, "message": one.message} for one in violations[:_MOST_FINDINGS]
    ]


def _find_schema(call: RoutedCall, schema: Any) -> tuple[Validator, str]:
    """Return the validator of a schema, and what it is called: a JSON Schema, or that of an entity type."""
    if isinstance(schema, str):
        declared = call.server.registrar.participants.get(ENTITY, {})
        if schema not in declared:
            known = ", ".join(sorted(declared)) or "none"
            message = f"There is no schema {schema[:80]!r}; send a JSON Schema, or name an entity type: {known}."
            raise refusal(_VALIDATE, "unknown-schema", message, field="/schema")
        return declared[schema].routes["read"].output, schema
    written = schema if isinstance(schema, Mapping) else {"not": {}} if schema is False else {}
    return read_schema(_VALIDATE, written, "schema"), "schema"


def read_schema(method: StandardMethod, schema: Mapping[str, Any], member: str) -> Validator:
    compiled = compile_schema(schema)
    if isinstance(compiled, Fault):
        raise refusal(method, "invalid-schema", f"The schema is not valid: {compiled.message}.", field=f"/{member}")
    return compiled


def _check_action(call: RoutedCall, target: Any) -> tuple[list[dict[str, Any]], str]:
    """Check a call that an agent is about to make: its endpoint, its input and the scopes of the caller."""
    action = target if isinstance(target, Mapping) else {}
    method, path, given = action.get("method"), action.get("path", "/"), action.get("parameters", {})
    if not (isinstance(method, str) and isinstance(path, str) and isinstance(given, Mapping)):
        form = '{"method": "BOOK", "path": "/room", "parameters": {...}}'
        raise invalid("schema", f"is needed for data; only a call such as {form} is checked without it.")
    found = find_visible(call, method.upper(), path)
    if found is None or found[0].endpoint.internal:
        message = f"there is no endpoint {method[:64]} {path[:200]}; DISCOVER /methods lists those that there are"
        return [{"pointer": "/method", "keyword": "endpoint", "message": message}], "contract"
    route, captured = found
    wrong = route.input.violations({**given, **(captured or {})})
    errors = [{**one, "pointer": f"/parameters{one['pointer']}"} for one in findings(wrong)]
    missing = call.principal.scopes.missing(route.endpoint.required_scopes)
    if missing:
        errors.append({"pointer": "", "keyword": "scope", "message": f"the caller lacks {', '.join(missing)}"})
    return errors, "contract"


async def _check_rules(call: RoutedCall, target: Any, rules: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Check expressions that must be true of a target; those of severity `warning` are warnings."""
    listed = rules if isinstance(rules, list) else []
    fits = all(isinstance(one, Mapping) and isinstance(one.get("rule"), str) for one in listed)
    if not listed or len(listed) > _MOST_RULES or not fits:
        form = '{"rules": [{"rule": "row.total > 0", "message": "...", "severity": "warning"}]}'
        message = f"Rules are a list of 1 to {_MOST_RULES} expressions: {form}."
        raise refusal(_VALIDATE, "invalid-schema", message, field="/schema/rules")
    row: Row = target if isinstance(target, Mapping) else {"value": target}
    found: dict[str, list[dict[str, Any]]] = {"error": [], "warning": []}
    for number, one in enumerate(listed):
        [(value, why)] = await evaluate_rows(call, _VALIDATE, one["rule"], [row], "schema")
        if value is not True:
            said = str(one.get("message") or f"`{one['rule'][:200]}` does not hold")
            reason = f": {why}" if why else ""
            place = {"pointer": f"/schema/rules/{number}", "keyword": "rule", "message": said + reason}
            found["warning" if one.get("severity") == "warning" else "error"].append(place)
    return found["error"], found["warning"]


@handler
async def rank(call: RoutedCall) -> Envelope:
    """Answer RANK /. Items without a score are left out, and counted."""
    given, criterion = call.input, call.input["criterion"]
    rows = await read_rows(call, _RANK, given["items"], "items")
    if isinstance(criterion, Mapping):
        weights = criterion.get("weights")
        for name in weights or () if rows else ():
            if not any(name in row or name.partition(".")[0] in row for row in rows):
                raise refusal(_RANK, "invalid-expression", f"{to_json(name)[:80]} is not a column. {_columns(rows)}")
        score, by = (weigh, weights) if weights else (_count_words, criterion["words"])
        scores = await compute_in_thread(call.agent_id, score, rows, by)
        how = "weighted mean of columns scaled to 0..1" if weights else "BM25 over the texts of the items"
    elif any(criterion in row for row in rows):
        scores, how = [_number(row.get(criterion)) for row in rows], "column"
        how += f" {criterion}" * criterion.isprintable()
    else:
        values = await evaluate_rows(call, _RANK, criterion, rows, "criterion")
        scores, how = [_number(value) for value, _ in values], "expression"
    scored = [(score, number) for number, score in enumerate(scores) if score is not None]
    scored.sort(key=lambda pair: -pair[0])  # stable: of two with one score, the first stays first
    ranked = [
        {"rank": place, "score": score, "item": rows[number]}
        for place, (score, number) in enumerate(scored[: given.get("limit", _RANKED)], 1)
    ]
    told = {"ranked": ranked, "count": len(ranked), "unranked": len(rows) - len(scored)}
    return Envelope({**told, "method": how[:256]})


def _columns(rows: Sequence[Row]) -> str:
    """Name the columns of rows, for whoever has mistyped one."""
    found = dict.fromkeys(islice((name for row in rows for name in row), 10_000))
    shown = [to_json(name[:60]) for name in islice(found, 20)]
    return f"The columns are: {', '.join([*shown, 'and others'] if len(found) > 20 else shown)}."


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def weigh(rows: Sequence[Row], weights: Mapping[str, float]) -> list[float | None]:
    """Scale each column to 0..1 and return weighted means; a negative weight prefers small values."""
    total = sum(map(abs, weights.values())) or 1.0
    scores: list[float | None] = [0.0] * len(rows)
    for name, weight in weights.items():
        column = [_number(value_of(row, name)) for row in rows]
        known = [value for value in column if value is not None]
        least, most = min(known, default=0.0), max(known, default=0.0)
        for number, value in enumerate(column):
            before = scores[number]
            if value is None or before is None:
                scores[number] = None
                continue
            share = (value - least) / (most - least) if most > least else 1.0
            scores[number] = before + abs(weight) / total * (share if weight >= 0 else 1.0 - share)
    return [None if score is None else round(score, 6) for score in scores]


def _count_words(rows: Sequence[Row], words: str) -> list[float | None]:
    """Score texts by BM25 with the usual constants; None for an item without any of the words."""
    wanted = split_words(words)
    texts = [split_words(msgspec.json.encode(list(row.values())).decode(), most=10_000) for row in rows]
    mean = sum(map(len, texts)) / max(len(texts), 1) or 1.0
    scores: list[float | None] = []
    rarity = {}
    for word in wanted:
        having = sum(word in text for text in texts)
        rarity[word] = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
    for text in texts:
        counts = {word: text.count(word) for word in wanted}
        score = sum(
            rarity[word] * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(text) / mean))
            for word, count in counts.items()
        )
        scores.append(round(score, 6) if any(counts.values()) else None)
    return scores


@handler
async def calculate(call: RoutedCall) -> Envelope:
    """Answer CALCULATE /. Formulas are decimal and exact; expressions in CEL have binary numbers."""
    given, expression, inputs = call.input, call.input["expression"], call.input["inputs"]
    currency, precision, named = given.get("currency"), given.get("precision"), None
    if isinstance(expression, Mapping) and set(expression) == {"formula"}:
        named, declared = expression["formula"], call.server.registrar.participants.get("formula", {})
        if not isinstance(named, str) or named not in declared:
            known = sorted(declared)
            message = f"There is no formula {named!r:.80}; there are: {', '.join(known) or 'none'}."
            raise refusal(_CALCULATE, "unknown-formula", message, field="/expression/formula", formulas=known)
        expression = declared[named].participant.options
    if currency is not None and precision is None:
        precision = places_of(currency)
    result: Any
    if isinstance(expression, str):
        if currency is not None:
            raise invalid("currency", 'needs a formula, which is exact: {"multiply": [{"input": "price"}, "1.19"]}.')
        [(result, why)] = await evaluate_rows(call, _CALCULATE, expression, [inputs], "expression")
        if why is not None:
            raise refusal(_CALCULATE, "expression-failed", f"The expression has no value: {why}.", field="/expression")
        how = "CEL, binary floating point"
        if precision is not None and isinstance(result, int | float) and not isinstance(result, bool):
            result = float(round_to(read_number(result, "the result"), precision))
    else:
        try:
            result = write_number(compute(expression, inputs), precision)
        except FormulaError as error:
            code, member = ("invalid-formula", "expression") if error.is_formula else ("not-computable", "inputs")
            raise refusal(_CALCULATE, code, f"The formula cannot be computed: {error}.", field=f"/{member}") from None
        how = "decimal arithmetic, half up"
    told = {"result": result, "inputs": inputs, "expression": expression, "method": how}
    more = {"precision": precision, "currency": currency, "formula": named}
    return Envelope(told | {name: value for name, value in more.items() if value is not None})


@handler
async def evaluate(call: RoutedCall) -> Envelope:
    """Answer EVALUATE /: each criterion is a number, scaled from its worst to its best value."""
    given, target = call.input, call.input["target"]
    weights: Mapping[str, float] = given.get("weights", {})
    names = [one["name"] for one in given["criteria"]]
    unknown = next((name for name in weights if name not in names), None)
    if unknown is not None or len(set(names)) < len(names):
        fault = f"names {unknown!r:.80}, which is not a criterion" if unknown is not None else "has a name twice"
        raise invalid("weights" if unknown is not None else "criteria", f"{fault}.")
    judged: list[dict[str, Any]] = []
    for number, one in enumerate(given["criteria"]):
        value, why = target.get(one["value"]), None  # most criteria are members of the target
        if value is None:
            [(value, why)] = await evaluate_rows(call, _EVALUATE, one["value"], [target], "criteria")
        found = float(value) if isinstance(value, bool) else _number(value)
        if found is None:
            reason = why or f"it is {value!r:.60}, not a number"
            message = f"The criterion {one['name']!r:.80} has no value: {reason}."
            raise refusal(_EVALUATE, "expression-failed", message, field=f"/criteria/{number}/value")
        worst, best = one.get("worst", 0.0), one.get("best", 1.0)
        if worst == best:
            raise invalid("criteria", f"has the same worst and best value for {one['name']!r:.80}.")
        score = round(min(max((found - worst) / (best - worst), 0.0), 1.0), 6)
        judged.append(
            {"name": one["name"], "value": value, "score": score, "weight": float(weights.get(one["name"], 1))}
        )
    total = sum(one["weight"] for one in judged)
    if not total:
        raise invalid("weights", "must have one that is more than 0.")
    composite = round(sum(one["score"] * one["weight"] for one in judged) / total, 6)
    told: dict[str, Any] = {"score": composite, "criteria": judged, "rationale": _explain(judged, composite, total)}
    reached = sorted((least, label) for label, least in given.get("rubric", {}).items() if least <= composite)
    told |= {"label": reached[-1][1]} if reached else {}
    return Envelope({**told, "method": "weighted mean of scores from worst (0) to best (1)"})


def _explain(judged: Sequence[Mapping[str, Any]], composite: float, total: float) -> str:
    ordered = sorted(judged, key=lambda one: -one["score"] * one["weight"])
    parts = [
        f"{one['name']} is {one['value']}, which scores {one['score']:.2f} and counts {one['weight'] / total:.0%}"
        for one in ordered
    ]
    return f"The score is {composite:.2f}: " + "; ".join(parts) + "."
