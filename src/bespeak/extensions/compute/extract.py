"""EXTRACT: fields of a schema in a text (Tier 2 4.1), by patterns and labels, functions of the service, or a model.

The confidence of a field is computed. By patterns it is `form * (0.5 + label / 2) / values`: `form` is how much the
form of the value tells (a date more than a number), `label` how well the words before the value are those of the field,
and `values` how many different values have an equally good label. What a function or a model says is looked up in the
source: 0.9 for a value that is there, 0.7 for one whose quotation is there, 0.3 for one without a place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from bespeak.contract.http_route import as_text
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.contract.standard.definition import TEXT, object_of
from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.compute.language import PART, ask_model, run_own
from bespeak.extensions.compute.methods import read_schema
from bespeak.extensions.compute.normalize import is_available, normalize_values
from bespeak.runtime.answer import Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.concurrency import compute_in_thread, run_in_thread
from bespeak.runtime.handling import handler, invalid, refusal
from bespeak.text.identifiers import apart
from bespeak.text.language.names import ABBREVIATIONS

_EXTRACT = STANDARD["EXTRACT"]
_MOST_FIELDS: Final = 64
_LONGEST: Final = 100_000  # characters of a source
_MOST_CANDIDATES: Final = 500  # values of one field
_MOST_PARTS: Final = 20_000  # words that are compared with the pattern of one field
_MOST_CHOICES: Final = 200
_MOST_CONTEXT: Final = 80  # characters before a value in which its label is
_DOUBTFUL: Final = 0.5  # a model is asked for fields below
_SAME: Final = ABBREVIATIONS | {"no": "number"}  # words of labels that mean the same
_LABELED: Final = re.compile(
    r"(?:^|[,;|\t]|  )[ \t*#>•-]{0,9}([^\W\d_][^\n:=|\t,;]{0,60}?)[ \t*]{0,9}[:=|\t][ \t*]{0,9}([^\s|][^\n|\t]{0,200}?)"
    r"(?=[ \t]{0,9}(?:$|[|\t]|[,;] [^\W\d_][\w .]{0,40}[:=] ))",
    re.MULTILINE,
)
_NUMBER: Final = r"(?<![\w.,-])[-+−]?\d{1,18}(?:[.,'’]\d{1,18}){0,6}(?![-/:.,'’]?\d|[^\W\d_]{0,5}\d)"
_DATE: Final = (
    r"\b\d{4}-\d\d-\d\d\b|\b\d{1,2}[./-]\d{1,2}[./-]\d{4}\b|\b\d{1,2}\.? [^\W\d_]{3,12}\.?,? \d{4}\b"
    r"|\b[^\W\d_]{3,12}\.? \d{1,2},? \d{4}\b"
)
_FORMS: Final[Mapping[str, tuple[str, float]]] = {  # patterns of formats, and how much each tells
    "date": (_DATE, 0.95),
    "date-time": (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)", 0.95),
    "email": (r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+", 0.95),
    "uri": (r"https?://[^\s<>\"'(){}]{0,2000}[^\s<>\"'(){}.,;:!?]", 0.95),
    "phone": (r"(?<![\w+])\+?\(?\d[\d ()/-]{5,20}\d\b", 0.8),
    "uuid": (r"\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b", 0.95),
    "number": (_NUMBER, 0.8),
}


class _Found(NamedTuple):
    """A value in the source. `form` is less if the value can be read in two ways."""

    value: Any
    start: int
    end: int
    form: float


@handler
async def extract(call: RoutedCall) -> Envelope:
    """Answer EXTRACT /. What is not found is missing; nothing is invented."""
    given, schema, engine = call.input, call.input["schema"], call.input.get("engine", "auto")
    is_text = isinstance(given["source"], str)
    text = given["source"] if is_text else await run_in_thread(_write_lines, given["source"])
    if len(text) > _LONGEST:
        raise invalid("source", f"must have at most {_LONGEST:,} characters; got {len(text):,}.")
    told: dict[str, Any] = {"engine": "pattern", "deterministic": True}
    fields: dict[str, dict[str, Any]] = {}
    if isinstance(schema, str):
        joined, output = await run_own(call, "extractor", schema, text)
        schema, told["engine"] = joined.routes["run"].endpoint.output_schema, "function"
        known = {name: value for name, value in (output or {}).items() if value is not None}
        fields = {name: _verify(value, text, text, "function") for name, value in known.items()}
    else:
        validators = _read_schema(schema)
        if engine != "model":
            found = partial(_find_fields, text, schema, validators, given.get("locale"))
            fields = await compute_in_thread(call.agent_id, found)
        doubtful = [name for name in validators if fields.get(name, {}).get("confidence", 0) < _DOUBTFUL]
        if doubtful and (engine == "model" or (engine == "auto" and call.server.part(PART) is not None)):
            quoted = {name: {"value": schema["properties"][name], "quote": TEXT} for name in doubtful}
            shared = {"$defs": schema.get("$defs", {})}
            wanted = {
                name: {"anyOf": [object_of(one, closed=True), {"type": "null"}], **shared}
                for name, one in quoted.items()
            }
            answer = await ask_model(call, _EXTRACTING, {"text": text}, object_of(wanted, closed=True))
            told = answer.document()
            for name, one in answer.value.items():
                if one is not None and one["value"] is not None:
                    made = _verify(one["value"], one["quote"], text, "model")
                    fields[name] = max(fields.get(name, made), made, key=lambda field: field["confidence"])
    least = given.get("confidence_threshold", 0)
    low = [{"name": name, "confidence": one["confidence"]} for name, one in fields.items() if one["confidence"] < least]
    fields = {name: one for name, one in fields.items() if one["confidence"] >= least}
    data = {name: one["value"] for name, one in fields.items()}
    compiled = compile_schema(schema)
    told |= {
        "data": data,
        "fields": [
            {"name": name, **{key: value for key, value in one.items() if is_text or key != "spans"}}
            for name, one in fields.items()
        ],
        "missing": [name for name in schema.get("required", ()) if name not in data],
        "below_threshold": low,
        "conforms": isinstance(compiled, Validator) and await run_in_thread(compiled.is_valid, data),
    }
    return Envelope(told)


_EXTRACTING: Final = (
    "Find the fields of `answer_schema` in `text`. For each, give its value and as `quote` the exact part of the text"
    " that states it. Give null for a field that the text does not state; never guess."
)


def _read_schema(schema: Mapping[str, Any]) -> dict[str, Validator]:
    read_schema(_EXTRACT, schema, "schema")
    properties = schema.get("properties")
    if schema.get("type", "object") != "object" or not properties or len(properties) > _MOST_FIELDS:
        message = f"The schema must be of an object with 1 to {_MOST_FIELDS} properties."
        raise refusal(_EXTRACT, "invalid-schema", message, field="/schema")
    shared = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    return {name: Validator(msgspec.json.encode({**shared, "allOf": [one]})) for name, one in properties.items()}


def _write_lines(data: Any) -> str:
    """Return data as lines of labels and values, so that it is read as a text is."""
    lines: list[str] = []
    waiting = [("", data)]
    while waiting:
        label, value = waiting.pop()
        if isinstance(value, Mapping | list):
            members = list(value.items() if isinstance(value, Mapping) else ((label, one) for one in value))
            waiting += [(str(key), one) for key, one in reversed(members)]
        elif value is not None:
            lines.append(f"{label}: {as_text(value)}" if label else as_text(value))
    return "\n".join(lines)


def _verify(value: Any, quote: str, text: str, method: str) -> dict[str, Any]:
    """Return a field whose value somebody else has found, with its place if it can be looked up."""
    start = text.find(quote)
    inside = _locate(value, quote) if start >= 0 else None
    span = (0, len(quote)) if inside is None else inside
    is_quoted = start >= 0 and quote != text  # the whole source is not a quotation
    spans = [[start + span[0], start + span[1]]] if inside is not None or is_quoted else []
    confidence = 0.9 if inside is not None else 0.7 if is_quoted else 0.3
    return {"value": value, "confidence": confidence, "spans": spans, "method": method}


def _locate(value: Any, text: str) -> tuple[int, int] | None:
    """Return where a text states a value: as it is, as a number with separators, or as a date."""
    exact = re.search(rf"(?<!\w){re.escape(as_text(value))}(?!\w)", text)
    if exact is not None:
        return exact.span()
    found: Iterable[_Found] = ()
    if isinstance(value, int | float) and not isinstance(value, bool):
        found = _match(_NUMBER, text, partial(_read_number, whole=isinstance(value, int)))
    elif isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        found = _match(_DATE, text, lambda part: (_normalize("date", part, None), 1))
    return next(((one.start, one.end) for one in islice(found, _MOST_CANDIDATES) if one.value == value), None)


def _find_fields(
    text: str, schema: Mapping[str, Any], validators: Mapping[str, Validator], locale: str | None
) -> dict[str, dict[str, Any]]:
    labeled = [(one[1], one.start(2), one.end(2)) for one in _LABELED.finditer(text)]
    fields = {}
    for name, declared in schema["properties"].items():
        field = declared if isinstance(declared, Mapping) else {}
        many = field.get("type") == "array" and isinstance(field.get("items"), Mapping)
        one = field["items"] if many else field
        fits = (lambda value, of=name: validators[of].is_valid([value])) if many else validators[name].is_valid
        tried = islice(
            _candidates(name, one, text, labeled, locale), _MOST_PARTS if "pattern" in one else _MOST_CANDIDATES
        )
        found = [each for each in tried if fits(each.value)][:_MOST_CANDIDATES]
        said = (name, *(field[key] for key in ("title", "description") if isinstance(field.get(key), str)))
        labels = [words for words in (frozenset(_words(one[:80])) for one in said) if words]
        made = _choose(labels, found, text, many=many)
        if made is not None and (not many or validators[name].is_valid(made["value"])):
            fields[name] = made
    return fields


def _choose(labels: list[frozenset[str]], found: list[_Found], text: str, *, many: bool) -> dict[str, Any] | None:
    """Return the value with the best label, or all of them for a list; None if nothing decides between several."""
    scored: list[tuple[float, _Found]] = []
    end = 0
    for one in found:
        scored.append((_score_label(labels, text, one.start, end), one))
        end = one.end
    best = max((score for score, _ in scored), default=0.0)
    # A number or any text can be anything; only what is labeled, or has a form of its own, is a field.
    chosen = [one for score, one in scored if score == best and (best or one.form >= 0.9)]
    distinct = {as_text(one.value) for one in chosen}
    if not chosen or (not best and len(distinct) > 1 and not many):
        return None
    taken = chosen if many else chosen[:1]
    confidence = min(one.form for one in taken) * (0.5 + best / 2) / (1 if many else len(distinct))
    value = [one.value for one in taken] if many else taken[0].value
    spans = [[one.start, one.end] for one in taken]
    return {"value": value, "confidence": round(confidence, 4), "spans": spans, "method": "label" if best else "form"}


def _words(text: str) -> list[str]:
    return [_SAME.get(one, one) for one in re.findall(r"[^\W_]+", apart(text).lower())]


def _score_label(labels: Iterable[frozenset[str]], text: str, start: int, since: int) -> float:
    """Return how well the words before a value are a label: all of them, with nothing else between, is 1."""
    *above, line = text[max(since, start - _MOST_CONTEXT) : start].rsplit("\n", 2)
    before = _words(line) or _words(above[-1] if above else "")
    best = 0.0
    for label in labels:
        places = [number for number, word in enumerate(before) if word in label]
        if places:
            span = before[places[0] :]
            best = max(best, len(label & set(span)) / len(label) * (0.5 + len(set(span) & label) / len(span) / 2))
    return best


def _candidates(
    name: str, field: Mapping[str, Any], text: str, labeled: list[tuple[str, int, int]], locale: str | None
) -> Iterator[_Found]:
    """Yield the values that a field may have, in the order of the text."""
    choices = [field["const"]] if "const" in field else field.get("enum", ())[:_MOST_CHOICES]
    if choices:
        by_text = {as_text(value).lower(): value for value in choices if value != ""}
        pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(by_text, key=len, reverse=True)))})(?!\w)"
        yield from _match(pattern, text, lambda part: (by_text.get(part.lower()), 0.9))
    elif "pattern" in field:
        # Patterns of callers are matched by a validator, in linear time.
        for one in re.finditer(r"[^\s,;:()\"'<>|]+", text):
            part = one[0].rstrip(".!?")
            yield _Found(part, one.start(), one.start() + len(part), 0.9)
    elif field.get("type") in ("number", "integer"):
        yield from _match(_NUMBER, text, partial(_read_number, whole=field["type"] == "integer"))
    elif field.get("type") == "boolean":
        yield from _match(r"\b(?:yes|no|true|false)\b", text, lambda part: (part.lower() in ("yes", "true"), 0.8))
    elif field.get("type", "string") == "string":
        form = "phone" if {"phone", "fax"} & set(_words(name)) else field.get("format", "")
        if form in _FORMS:
            pattern, weight = _FORMS[form]
            yield from _match(pattern, text, lambda part: (_normalize(form, part, locale), weight))
        else:
            yield from (_Found(text[start:end], start, end, 0.8) for _, start, end in labeled)


def _match(pattern: str, text: str, read: Callable[[str], tuple[Any, float]]) -> Iterator[_Found]:
    for one in re.finditer(pattern, text, re.IGNORECASE):
        value, form = read(one[0])
        if value is not None:
            yield _Found(value, one.start(), one.end(), form)


@lru_cache(maxsize=1024)
def _normalize(form: str, part: str, locale: str | None) -> str | None:
    """Return a date in ISO 8601, None for what is not one or has two meanings; anything else as it is."""
    if form != "date" or re.fullmatch(r"\d{4}-\d\d-\d\d", part):
        return part
    return normalize_values("date", [part], locale)[0].get("canonical") if is_available() else None


def _read_number(part: str, *, whole: bool) -> tuple[float | int | None, float]:
    """Read a number with separators. One that may be decimal or not, such as 1,200, counts half."""
    text = re.sub("['’]", "", part.replace("−", "-"))
    marks = [char for char in text if char in ".,"]
    last = max(text.rfind("."), text.rfind(","))
    decimal = bool(marks) and (marks.count(text[last]) == 1)
    doubtful = len(marks) == 1 and len(text) - last == 4
    if doubtful:
        decimal = text[last] == "."
    digits = re.sub("[.,]", "", text[:last] if decimal else text)
    number = float(f"{digits}.{text[last + 1 :]}") if decimal else int(digits) if len(digits) < 19 else None
    value = int(number) if whole and isinstance(number, float) and number.is_integer() else number
    return value, 0.4 if doubtful else 0.8
