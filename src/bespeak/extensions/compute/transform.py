"""TRANSFORM: data from one format, schema or structure into another (Tier 2 4.4)."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

from bespeak.contract.schema.validation import Validator
from bespeak.contract.standard.compute import MAPPING
from bespeak.contract.standard.methods import STANDARD
from bespeak.documents.data_formats import FormatError, read_data
from bespeak.documents.table_files import MissingLibraryError, read_parquet
from bespeak.extensions.acquire.methods import read_thing
from bespeak.extensions.compute.methods import evaluate_rows, findings, read_schema, write_answer
from bespeak.extensions.data.collection import MOST_ROWS, Row, read_rows
from bespeak.runtime.answer import Envelope
from bespeak.runtime.call import RoutedCall, not_available
from bespeak.runtime.concurrency import compute_in_thread, run_in_thread
from bespeak.runtime.handling import RefusedError, handler, invalid, refusal
from bespeak.text.source.pointer import child

_TRANSFORM = STANDARD["TRANSFORM"]
_MOST_UNUSED: Final = 1000  # names of fields in one answer
_MOST_ERRORS: Final = 100
_WORD: Final = re.compile(r"\w+")
_OF_LISTS: Final = ("items", "prefixItems", "contains", "minItems", "maxItems")
_LONGEST_NUMBER: Final = 100  # characters of a text that may be a number
_ABSENT: Final = object()


@handler
async def transform(call: RoutedCall) -> Envelope:
    """Answer TRANSFORM /. A field that a row lacks is left out and counted; a value that fails is refused."""
    given, target = call.input, call.input["target_format"]
    mapping, document = await _read_mapping(call)
    validator = None if isinstance(target, str) else read_schema(_TRANSFORM, target, "target_format")
    data = await _read_source(call, given["source"], given.get("source_format"))
    told: dict[str, Any] = {"unused_fields": [], "missing": {}}
    if mapping is not None:
        rows = data if isinstance(data, list) else [data]
        if not all(isinstance(row, Mapping) for row in rows):
            raise invalid("mapping", "needs a source of objects; the source has other values.")
        _check_targets(list(mapping))
        values: dict[str, Sequence[Any]] = {}
        for name, wanted in mapping.items():
            if isinstance(wanted, Mapping):
                values[name] = await _compute(call, name, wanted["expression"], rows)
        converting = {one["target"]: one["convert"] for one in document.get("fields", ()) if "convert" in one}
        made, told["missing"], unconverted = await compute_in_thread(
            call.agent_id, _map_rows, rows, mapping, values, converting
        )
        told |= {"unconverted": unconverted} if unconverted else {}
        policy = document.get("unmapped_policy", "flag")
        unused = [] if policy == "ignore" else await compute_in_thread(call.agent_id, _find_unused, rows, mapping)
        told["unused_fields"] = unused
        if policy == "preserve":
            told["unused_fields"] = await compute_in_thread(call.agent_id, _preserve, rows, made, unused)
        data = made if isinstance(data, list) else made[0]
    if validator is not None:
        told["schema_applied_to"] = await run_in_thread(_check, validator, target, data)
    form = target if isinstance(target, str) else "json"
    told |= await run_in_thread(write_answer, _TRANSFORM, data, form, "data")
    return Envelope({**told, "count": len(data) if isinstance(data, list) else 1})


async def _read_mapping(call: RoutedCall) -> tuple[Mapping[str, Any] | None, Mapping[str, Any]]:
    """Return the mapping, and the document of MAP that it comes from, if any."""
    mapping, choice = call.input.get("mapping"), call.input.get("doubtful")
    if isinstance(mapping, str):
        kept = mapping if "/" in mapping or mapping.startswith("res-") else f"maps/{mapping}"
        found = await read_thing(call, kept)
        mapping = None if found is None else found["content"]
        if not _DOCUMENT.is_valid(mapping):
            message = f"{kept[:80]!r} is not a mapping document that this agent may read."
            raise refusal(_TRANSFORM, "unknown-mapping", message, field="/mapping")
    if mapping is None or not isinstance(mapping.get("fields"), list):
        return mapping, {}
    doubtful = [one for one in mapping["fields"] if one["status"] == "doubtful"]
    if doubtful and choice is None:
        message = f"{len(doubtful)} pairs of the mapping are doubtful; look at them, and say `doubtful`: use or skip."
        raise refusal(_TRANSFORM, "doubtful-mapping", message, field="/doubtful", pairs=doubtful[:_MOST_ERRORS])
    used = [one for one in mapping["fields"] if choice == "use" or one not in doubtful]
    return {one["target"]: one["source"] for one in used}, mapping


_DOCUMENT: Final = Validator(msgspec.json.encode(MAPPING))


async def _read_source(call: RoutedCall, source: Any, form: str | None) -> Any:
    if isinstance(source, str):
        if form is None:
            raise invalid("source_format", "is needed for a text: the format is not guessed.")
        try:
            data = await run_in_thread(_read_parquet if form == "parquet" else read_data, source, form)
        except MissingLibraryError as error:
            raise RefusedError(not_available(_TRANSFORM.name, str(error))) from None
        except FormatError as error:
            where = {"line": error.line} if error.line else {}
            message = f"The source is not {form} that can be read: {error}."
            raise refusal(_TRANSFORM, "invalid-source", message, field="/source", **where) from None
    elif form not in {None, "json"}:
        raise invalid("source_format", f"is {form}, which is a text; the source is data, so leave it out.")
    elif (
        form is None
        and isinstance(source, Mapping)
        and "collection" in source
        and set(source) <= {"collection", "filter"}
    ):
        if not isinstance(source["collection"], str) or not isinstance(source.get("filter", {}), Mapping):
            raise invalid("source", 'names a collection wrongly; data with such members has `source_format` "json".')
        data = await read_rows(call, _TRANSFORM, source, "source")
    else:
        data = source
    if isinstance(data, list) and len(data) > MOST_ROWS:
        raise invalid("source", f"must have at most {MOST_ROWS:,} rows; got {len(data):,}.")
    return data


def _read_parquet(source: str, _: str) -> list[dict[str, Any]]:
    try:
        content = b64decode(source, validate=True)
    except ValueError:
        raise FormatError("the text is not base64") from None
    return read_parquet(content, MOST_ROWS)


def _check_targets(names: Sequence[str]) -> None:
    """Refuse a mapping of which one target is inside another: `customer` and `customer.city`."""
    known = set(names)
    for name in names:
        parts = name.split(".")
        inside = next((".".join(parts[:n]) for n in range(1, len(parts)) if ".".join(parts[:n]) in known), None)
        if inside is not None or "" in parts:
            fault = f"is inside {inside[:80]!r}, which is a target too" if inside is not None else "has an empty part"
            raise invalid("mapping", f"has the target {name[:80]!r}, which {fault}.")


async def _compute(call: RoutedCall, name: str, text: str, rows: Sequence[Row]) -> Sequence[Any]:
    found = await evaluate_rows(call, _TRANSFORM, text, rows, "mapping") if rows else []
    failed = next(((number, why) for number, (_, why) in enumerate(found) if why is not None), None)
    if failed is not None:
        message = f"The expression for {name[:80]!r} has no value for row {failed[0]}: {failed[1]}."
        field = child("/mapping", name)
        raise refusal(_TRANSFORM, "expression-failed", message, field=field, row=failed[0])
    return [value for value, _ in found]


def _map_rows(
    rows: Sequence[Row],
    mapping: Mapping[str, Any],
    values: Mapping[str, Sequence[Any]],
    converting: Mapping[str, str],
) -> tuple[list[dict[str, Any]], dict[str, int], dict[str, int]]:
    """Return a row for each row, and how often each target was left out because a row lacks its source.

    Also return how often a value stayed as it was because its conversion would lose something.
    """
    made: list[dict[str, Any]] = []
    missing: dict[str, int] = {}
    unconverted: dict[str, int] = {}
    targets = [(name, name.split("."), wanted) for name, wanted in mapping.items()]
    for number, row in enumerate(rows):
        result: dict[str, Any] = {}
        for name, (*above, last), wanted in targets:
            value = values[name][number] if name in values else _follow(row, wanted)
            if value is _ABSENT:
                missing[name] = missing.get(name, 0) + 1
                continue
            if name in converting and value is not None:
                converted = _convert(value, converting[name])
                if converted is _ABSENT:
                    unconverted[name] = unconverted.get(name, 0) + 1
                else:
                    value = converted
            place = result
            for part in above:
                place = place.setdefault(part, {})
            place[last] = value
        made.append(result)
    return made, missing, unconverted


def _convert(value: Any, wanted: str) -> Any:
    """Return a value as another type if nothing is lost: "12" is 12, but "012" is not. Else return _ABSENT."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if wanted == "string":
        return text if isinstance(value, str | int | float) else _ABSENT
    try:
        found = msgspec.json.decode(text) if len(text) < _LONGEST_NUMBER else None
    except msgspec.DecodeError:
        return _ABSENT
    if wanted == "boolean" or isinstance(found, bool):
        return found if wanted == "boolean" and isinstance(found, bool) else _ABSENT
    if not isinstance(found, int | float) or Decimal(text) != Decimal(repr(found)):
        return _ABSENT
    if wanted == "number":
        return found
    return int(found) if wanted == "integer" and found == int(found) else _ABSENT


def _preserve(rows: Sequence[Row], made: Sequence[dict[str, Any]], unused: Sequence[str]) -> list[str]:
    """Put fields that are not mapped into the results, unless something is there; return those that do not fit."""
    left: dict[str, None] = {}
    for row, result in zip(rows, made, strict=True):
        for path in unused:
            value, parts = _follow(row, path), [path] if path in row else path.split(".")
            place: Any = result
            for part in parts[:-1]:
                place = place.setdefault(part, {}) if isinstance(place, dict) else {}
            if value is not _ABSENT and (not isinstance(place, dict) or parts[-1] in place):
                left[path] = None
            elif value is not _ABSENT:
                place[parts[-1]] = value
    return list(left)


def _follow(row: Row, path: str) -> Any:
    """Return what is at a path: `lines.0.sku` goes through objects and lists, unless the row has that very name."""
    if path in row:
        return row[path]
    value: Any = row
    for part in path.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and len(part) < 7 and int(part) < len(value):
            value = value[int(part)]
        else:
            return _ABSENT
    return value


def _find_unused(rows: Sequence[Row], mapping: Mapping[str, Any]) -> list[str]:
    """Return the fields that neither a path leads to nor an expression names; `customer.city` is a field, too."""
    paths = {wanted for wanted in mapping.values() if isinstance(wanted, str)}
    through = {path[:at] for path in paths for at, char in enumerate(path) if char == "."}
    words = {word for one in mapping.values() if isinstance(one, Mapping) for word in _WORD.findall(one["expression"])}

    def walk(row: Row, above: str) -> Iterator[str]:
        for name, value in row.items():
            here = f"{above}{name}"
            if here in paths or (not above and name in words):
                continue
            if here not in through:
                yield here
            elif isinstance(value, Mapping):
                yield from walk(value, f"{here}.")

    found: dict[str, None] = {}
    for row in rows:
        found |= dict.fromkeys(walk(row, ""))
        if len(found) > _MOST_UNUSED:
            break
    return list(found)[:_MOST_UNUSED]


def _check(validator: Validator, schema: Mapping[str, Any], data: Any) -> str:
    """Check the result, or each row of it if the schema is not about lists; return which."""
    by_row = isinstance(data, list) and schema.get("type") != "array" and not any(name in schema for name in _OF_LISTS)
    places: list[dict[str, Any]] = []
    for number, value in enumerate(data if by_row else [data]):
        if validator.is_valid(value):
            continue
        above = f"/{number}" if by_row else ""
        places += [{**one, "pointer": above + one["pointer"]} for one in findings(validator.violations(value))]
        if len(places) >= _MOST_ERRORS:
            break
    if places:
        first = f"{places[0]['pointer'] or 'the result'}: {places[0]['message']}"
        message = f"The result does not meet the schema at {len(places)} places; the first is {first}."
        raise refusal(_TRANSFORM, "schema-not-met", message, field="/target_format", errors=places[:_MOST_ERRORS])
    return "each row" if by_row else "the result"
