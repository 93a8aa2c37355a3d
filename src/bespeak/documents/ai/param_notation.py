"""A parameter in one line of a /.well-known/ai document: `integer, optional, max 50 -- how many to return`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.contract.schema.view import SchemaView, listed_values

LONGEST: Final = 300  # maximum length of `returns` in a /.well-known/ai document, in characters
UNKNOWN: Final = "object"  # value of `returns` if the contract does not declare fields

FORMATS: Final = (
    *("uuid", "date", "date-time", "time", "duration", "email", "uri", "uri-reference", "hostname", "ipv4", "ipv6"),
    *("regex", "json-pointer", "idn-email", "iri"),
)

KINDS: Final = ("string", "integer", "number", "boolean", "array", "object")

_MORE: Final = "..."
_PLAIN: Final = re.compile(r"[A-Za-z0-9_$@][A-Za-z0-9_$@.-]*")
_NAME: Final = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([^\s,{}\[\]:?"]+))\s*(\?)?\s*((?:\[\]\s*)*)')
_TYPE: Final = re.compile(r"\s*:\s*([^\s,{}]+)")


def write_returns(schema: Mapping[str, Any]) -> str:
    """Write the output of an endpoint; if it is too long, drop the deepest levels first, then whole fields."""
    view = SchemaView(schema, schema)
    if view.kind not in ("object", "array", ""):
        return view.kind
    if view.kind != "array":
        return write_fields(view, LONGEST) or UNKNOWN
    inner = write_fields(view.items, LONGEST - 5)
    return f"[] {{{inner}}}" if inner else "[]"


def write_fields(view: SchemaView, most: int, *, typed: bool = False) -> str:
    """Write the fields of an object in at most `most` characters; `typed` adds types, and `?` for optional fields."""
    text = ""
    for depth in (3, 2, 1):
        text, whole = _write(view, most, depth, typed)
        if whole:
            break
    return text


def parse_fields(text: str) -> dict[str, Any]:
    """Parse a list of fields into an object schema; parts that cannot be read are skipped."""
    return _read(text, 0, 0)[0]


def _write(view: SchemaView, most: int, depth: int, typed: bool) -> tuple[str, bool]:
    """Write the fields; also return True if none was dropped."""
    text, whole = "", True
    for name, schema, required in view.fields:
        inner, brackets = SchemaView(schema, view), ""
        while inner.kind == "array" and len(brackets) < 4:
            brackets += "[]"
            inner = inner.items
        written = name if _PLAIN.fullmatch(name) else msgspec.json.encode(name).decode()
        head = f"{written}{'?' if typed and not required else ''}{brackets}"
        if typed and (kind := _kind(inner)):
            head += f": {kind}"
        start = f"{text}, {head}" if text else head
        if len(start) + len(_MORE) + 2 > most:
            return (f"{text}, {_MORE}" if text else "", False)
        text = start
        if depth > 1 and inner.kind == "object":
            below, complete = _write(inner, most - len(text) - len(_MORE) - 5, depth - 1, typed)
            whole = whole and complete
            text = f"{text} {{{below}}}" if below else text
    return text, whole


def _kind(view: SchemaView) -> str:
    values = view.keywords.get("enum")
    listed = values if isinstance(values, list) and 1 < len(values) <= 8 else []
    if listed and all(isinstance(value, str) and _PLAIN.fullmatch(value) for value in listed):
        return "|".join(listed)
    if view.kind == "string":
        form = view.keywords.get("format")
        return form if form in FORMATS else ""
    if view.kind == "object":
        return "" if view.keywords.get("properties") else "object"
    return view.kind


def _read(text: str, at: int, depth: int) -> tuple[dict[str, Any], int]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    while at < len(text) and (found := _NAME.match(text, at)) is not None:
        at = found.end()
        name = _unquoted(found[1]) if found[1] else found[2]
        schema: dict[str, Any] = {}
        if (kind := _TYPE.match(text, at)) is not None:
            at, schema = kind.end(), _typed(kind[1])
        at = _blank(text, at)
        if text[at : at + 1] == "{" and depth < 8:
            schema, at = _read(text, at + 1, depth + 1)
            at = _blank(text, at + 1)
        for _ in range(found[4].count("[]")):
            schema = {"type": "array", "items": schema} if schema else {"type": "array"}
        if name != _MORE:
            properties[name] = schema
            required += [] if found[3] else [name]
        if text[at : at + 1] != ",":
            break
        at += 1
    schema = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema, at


def _typed(word: str) -> dict[str, Any]:
    if "|" in word:
        return {"type": "string", "enum": word.split("|")}
    return {"type": "string", "format": word} if word in FORMATS else {"type": word} if word in KINDS else {}


def _blank(text: str, at: int) -> int:
    while text[at : at + 1] == " ":
        at += 1
    return at


def _unquoted(text: str) -> str:
    try:
        return str(msgspec.json.decode(text))
    except (msgspec.DecodeError, ValueError):
        return text[1:-1]


ANYTHING: Final = "any JSON value"
_OBJECT: Final = "JSON object"
_NULL: Final = "or null"
_MOST_VALUES: Final = 40
_LONGEST: Final = 200  # characters of one constraint; longer ones are only in documents with the whole schema
_MOST: Final = 1 << 63

_BARE: Final = re.compile(r"[A-Za-z0-9_./:@+-]+")
_NUMBER: Final = r"(-?[0-9][0-9eE.+-]*)"
_UNIT: Final = r"(?:\s*(characters?|chars?|items?|elements?|entries))?"
_BOUND: Final = re.compile(
    rf"(min|max|minimum|maximum|at least|at most|>=|<=|above|below|>|<)[\s:=]*{_NUMBER}{_UNIT}", re.IGNORECASE
)
_LENGTH: Final = re.compile(rf"(?:(min|max)[\s_-]*)?length[\s:=]*{_NUMBER}", re.IGNORECASE)
_ITEMS: Final = re.compile(rf"(min|max)[\s_-]*items[\s:=]*{_NUMBER}", re.IGNORECASE)
_RANGE: Final = re.compile(rf"(?:between\s+)?{_NUMBER}\s*(?:\.\.|to|and|–|-)\s*{_NUMBER}{_UNIT}", re.IGNORECASE)
_DEFAULT: Final = re.compile(r"(?:default(?:s to)?|defaults)\b[\s:=]*(.*)", re.IGNORECASE)
_FORMAT: Final = re.compile(r"(?:format[\s:=]+)?([A-Za-z0-9-]+)", re.IGNORECASE)
_NAMED: Final = re.compile(r"(pattern|multiple of|only|of|or)[\s:=]+(.+)", re.IGNORECASE)
_CHOICE: Final = re.compile(r"(?:(?:one of|enum|values)[\s:=]+)?(.*)", re.IGNORECASE)

_BOUNDS: Final = {"string": ("minLength", "maxLength"), "array": ("minItems", "maxItems")}  # of bounds without unit
_NUMBER_FORMS: Final[Mapping[str, str]] = {
    "minimum": "min {}",
    "maximum": "max {}",
    "exclusiveMinimum": "above {}",
    "exclusiveMaximum": "below {}",
    "multipleOf": "multiple of {}",
}
_BOUND_FORMS: Final[Mapping[str, Mapping[str, str]]] = {
    "string": {"minLength": "min length {}", "maxLength": "max length {}"},
    "array": {"minItems": "min {} items", "maxItems": "max {} items"},
    "boolean": {},
    "object": {},
}
_SYNONYMS: Final = {"yyyy-mm-dd": "date", "datetime": "date-time", "iso8601": "date-time", "url": "uri", "guid": "uuid"}


def write_constraints(view: SchemaView) -> Iterator[str]:
    """Yield every constraint that the notation can express, without commas outside of brackets and quotes."""
    schema = view.keywords
    plain = view.kinds == ("string",)
    if not view.kind:
        yield ANYTHING
    if view.kind == "object":
        inner = write_fields(view, _LONGEST, typed=True)
        yield f"{_OBJECT} {{{inner}}}" if inner else _OBJECT
    if view.kind == "array" and "items" in schema:
        yield from _write_items(view.items)
    form, pattern = schema.get("format"), schema.get("pattern")
    if view.kind == "string" and form in FORMATS:
        yield str(form)
    if view.kind == "string" and isinstance(pattern, str) and len(pattern) <= 60:
        yield f"pattern {_quoted(pattern)}"
    yield from _write_bounds(view)
    yield from _write_values(schema, plain=plain)
    yield from (f"or {kind}" for kind in view.kinds[1:])
    if view.nullable:
        yield _NULL
    if "default" in schema and (value := _token(schema["default"], plain=plain)) is not None:
        yield f"default {value}"


def _write_items(item: SchemaView) -> Iterator[str]:
    values = [*_write_values(item.keywords, plain=item.kinds == ("string",))]
    if values and "|" in values[0]:
        yield f"of {values[0]}"
    elif item.kind == "object":
        inner = write_fields(item, _LONGEST, typed=True)
        yield f"of {{{inner}}}" if inner else "of object"
    elif item.kind:
        form = item.keywords.get("format")
        yield f"of {form if item.kind == 'string' and form in FORMATS else item.kind}"


def _write_bounds(view: SchemaView) -> Iterator[str]:
    for keyword, form in _BOUND_FORMS.get(view.kind, _NUMBER_FORMS).items():
        value = view.keywords.get(keyword)
        if value is None or isinstance(value, bool) or not isinstance(value, int | float):
            continue
        number = _token(value, plain=False)
        if number not in (None, "null"):
            yield form.format(number)
    if view.kind == "array" and view.keywords.get("uniqueItems") is True:
        yield "unique"


def _write_values(schema: Mapping[str, Any], *, plain: bool) -> Iterator[str]:
    if not (values := listed_values(schema)):
        return
    tokens = [_token(value, plain=plain) for value in values[:_MOST_VALUES]]
    text = "|".join(token for token in tokens if token is not None)
    if None in tokens or len(values) > _MOST_VALUES or len(text) > _LONGEST:
        yield f"one of {len(values)} values"
    else:
        yield text if len(values) > 1 else f"only {text}"


def _token(value: object, *, plain: bool) -> str | None:
    """Write a value of a constraint; with `plain`, text that is unambiguous without quotes has none."""
    try:
        text = _quoted(value) if isinstance(value, str) and plain else msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError):
        return None
    return text if len(text) <= _LONGEST else None


def _quoted(text: str) -> str:
    bare = _BARE.fullmatch(text) is not None and "--" not in text and text != "null"
    return text if bare else msgspec.json.encode(text).decode()


def read_constraint(text: str, kind: str, schema: dict[str, Any]) -> bool:
    """Add a constraint to the schema of a type; return False if the constraint is unknown or not valid."""
    for read in _READERS:
        changed = dict(schema)
        if read(text, kind, changed) and _is_sound(changed):
            schema.clear()
            schema.update(changed)
            return True
    return False


def _is_sound(schema: Mapping[str, Any]) -> bool:
    """Return True if the keywords read are valid in a schema; `max -1` and a broken pattern are not."""
    counts = (schema.get(keyword, 0) for keyword in ("minLength", "maxLength", "minItems", "maxItems"))
    if not all(isinstance(count, int) and count >= 0 for count in counts):
        return False
    bounds = [schema[keyword] for keyword in ("exclusiveMinimum", "exclusiveMaximum") if keyword in schema]
    if None in bounds or not (schema.get("multipleOf", 1) or 0) > 0:
        return False
    return "pattern" not in schema or isinstance(compile_schema({"pattern": schema["pattern"]}), Validator)


def _read_word(text: str, kind: str, schema: dict[str, Any]) -> bool:
    word = text.lower()
    if word in (_NULL, "nullable"):
        types = schema.get("type")
        schema["type"] = [*(types if isinstance(types, list) else [types or kind]), "null"]
    elif word in ("unique", "unique items"):
        schema["uniqueItems"] = True
    elif word == ANYTHING.lower():
        schema.pop("type", None)
    elif word.startswith(_OBJECT.lower()):
        inner = text[len(_OBJECT) :].strip()
        schema.pop("type", None)
        schema |= parse_fields(inner[1:-1]) if inner.startswith("{") else {"type": "object"}
    else:
        return False
    return True


def _read_default(text: str, kind: str, schema: dict[str, Any]) -> bool:
    found = _DEFAULT.fullmatch(text)
    if found is None or not found[1]:
        return False
    schema["default"] = _value(found[1], kind)
    return True


def _read_bound(text: str, kind: str, schema: dict[str, Any]) -> bool:
    if (length := _LENGTH.fullmatch(text)) is not None:
        ends = [length[1].lower()] if length[1] else ["min", "max"]
        schema |= dict.fromkeys((f"{end}Length" for end in ends), _number(length[2]))
        return True
    if (items := _ITEMS.fullmatch(text)) is not None:
        schema[f"{items[1].lower()}Items"] = _number(items[2])
        return True
    if (between := _RANGE.fullmatch(text)) is not None:
        low, high = _number(between[1]), _number(between[2])
        if low is None or high is None or low > high:
            return False
        return _bound(schema, kind, between[3], low, low=True) and _bound(schema, kind, between[3], high, low=False)
    if (found := _BOUND.fullmatch(text)) is None:
        return False
    word, number = found[1].lower(), _number(found[2])
    if word in ("above", "below", ">", "<"):
        schema["exclusiveMinimum" if word in ("above", ">") else "exclusiveMaximum"] = number
        return number is not None
    return _bound(schema, kind, found[3], number, low=word in ("min", "minimum", "at least", ">="))


def _bound(schema: dict[str, Any], kind: str, unit: str | None, number: float | None, *, low: bool) -> bool:
    if number is None:
        return False
    if unit:
        kind = "string" if unit.lower().startswith("char") else "array"
    lowest, highest = _BOUNDS.get(kind, ("minimum", "maximum"))
    schema[lowest if low else highest] = number
    return True


def _read_named(text: str, kind: str, schema: dict[str, Any]) -> bool:
    if (found := _NAMED.fullmatch(text)) is None:
        return False
    word, rest = found[1].lower(), found[2].strip()
    if word == "pattern":
        schema["pattern"] = str(_value(rest, "string"))
    elif word == "multiple of":
        schema["multipleOf"] = _number(rest)
    elif word == "only":
        schema["enum"] = [_value(rest, kind)]
    elif word == "of" and kind == "array":
        schema["items"] = _read_items(rest)
    elif rest.lower() in KINDS:
        types = schema.get("type")
        schema["type"] = [*(types if isinstance(types, list) else [types or kind]), rest.lower()]
    else:
        return False
    return True


def _read_items(text: str) -> dict[str, Any]:
    if text.startswith("{"):
        return parse_fields(text[1:-1])
    word = text.lower()
    for name in (word, word.removesuffix("s")):
        if name in KINDS:
            return {"type": name}
        if name in FORMATS:
            return {"type": "string", "format": name}
    return {"enum": [_value(part, "") for part in split(text, "|")]} if "|" in text else {}


def _read_choice(text: str, kind: str, schema: dict[str, Any]) -> bool:
    found = _CHOICE.fullmatch(text)
    values = split(found[1], "|") if found is not None else []
    if len(values) < 2 or any(not value for value in values):
        return False
    schema["enum"] = [_value(value, kind) for value in values]
    return True


def _read_format(text: str, kind: str, schema: dict[str, Any]) -> bool:
    found = _FORMAT.fullmatch(text)
    word = found[1].lower() if found is not None else ""
    form = _SYNONYMS.get(word, word)
    if form not in FORMATS or kind not in ("string", ""):
        return False
    schema["format"] = form
    return True


_READERS: Final = (_read_word, _read_default, _read_bound, _read_named, _read_choice, _read_format)


def _value(text: str, kind: str) -> Any:
    """Parse a value; text may be unquoted if a text is expected."""
    text = text.strip()
    if kind == "string" and text[:1] not in ('"', "[", "{"):
        return None if text == "null" else text.strip("'")
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return text.strip("'\"`")


def _number(text: str) -> int | float | None:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError):
        return None
    if isinstance(value, int):
        return value if abs(value) < _MOST else None
    return value if isinstance(value, float) and math.isfinite(value) else None


def split(text: str, separator: str) -> list[str]:
    """Split a text at separators outside of quotes and brackets."""
    parts, start, level, quoted, at = [], 0, 0, False, 0
    while at < len(text):
        letter = text[at]
        if quoted:
            at += letter == "\\"
            quoted = letter != '"'
        elif letter == '"':
            quoted = True
        elif letter in "{[(":
            level += 1
        elif letter in "}])":
            level = max(0, level - 1)
        elif letter == separator and not level:
            parts.append(text[start:at].strip())
            start = at + 1
        at += 1
    return [*parts, text[start:].strip()]


TYPES: Final = ("string", "integer", "number", "boolean", "array")  # ai-discovery 3.3; an object is a `string`

_CUT: Final = "..."

_KIND: Final[Mapping[str, dict[str, Any]]] = {
    **{name: {"type": name} for name in (*TYPES, "object")},
    **{name: {"type": "string"} for name in ("str", "text", "file", "enum")},
    **{name: {"type": "integer"} for name in ("int", "long")},
    **{name: {"type": "number"} for name in ("float", "double", "decimal")},
    "bool": {"type": "boolean"},
    "list": {"type": "array"},
    **{name: {"type": "object"} for name in ("json", "dict", "map")},
    **{name: {"type": "string", "format": "date-time"} for name in ("datetime", "timestamp")},
    "url": {"type": "string", "format": "uri"},
    **{name: {"type": "string", "format": name} for name in FORMATS},
}
_WORD: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]*)(?:[\[<]([A-Za-z-]+)[\]>])?((?:\[\])?)(\??)")
_REQUIREMENT: Final = re.compile(r"(?i)(required|mandatory|optional|not required)(?:\s*[:=]\s*(true|false))?")
_QUOTED: Final = r'"(?:[^"\\]|\\.)*+"'
_DASH: Final = re.compile(rf"{_QUOTED}|\s*(?:--|[—–])\s*")
_HYPHEN: Final = re.compile(rf"{_QUOTED}|\s+-\s+")
_BREAKS: Final = re.compile(r"[\t\r\n]+")
_AT_END: Final = re.compile(r"\(([^()]*)\)\.?$")


@dataclass(frozen=True, slots=True)
class ParamNotation:
    schema: dict[str, Any]  # JSON Schema; empty if the line does not name a type
    required: bool
    description: str


def write_param(schema: object, *, required: bool, root: Mapping[str, Any] | None = None, longest: int = 100) -> str:
    """Write the line of a parameter. `root` resolves references of its schema; `longest` limits the description."""
    view = SchemaView(schema, root or {})
    parts = [view.kind if view.kind in TYPES else "string", "required" if required else "optional"]
    text = ", ".join((*parts, *write_constraints(view)))
    about = view.keywords.get("description") or view.keywords.get("title")
    description_text = cut(about, longest) if isinstance(about, str) and longest else ""
    return f"{text} -- {description_text}" if description_text else text


def cut(text: str, most: int) -> str:
    """Return a text on one line of at most `most` characters, cut between words."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    kept = line[: most - len(_CUT) + 1].rpartition(" ")[0] or line[: most - len(_CUT)]
    return kept.rstrip(" ,;:-") + _CUT


def parse_param(text: str) -> ParamNotation:
    """Parse a line in any notation in use. Never raises; parts that are not recognised become the description.

    `string, required, max 5 -- text`, the same with a dash; `string (required) — text`; `string (required - text)`;
    `text (string, required)`.
    """
    line = _BREAKS.sub(" ", text[:2000]).strip()
    if (found := _by_type(line) or _by_end(line)) is not None:
        return found
    lone = _REQUIREMENT.fullmatch(split(line, ",")[0])
    return ParamNotation({}, lone is not None and _requires(lone), line)


def _by_type(line: str) -> ParamNotation | None:
    word = _WORD.match(line)
    kind = _KIND.get(word[1].lower()) if word is not None else None
    if word is None or kind is None:
        return None
    rest = line[word.end() :].lstrip()
    if rest[:1] == "(":
        inside, behind = _parentheses(rest)
        head, about = _described(inside)
        more, after = _described(behind.lstrip(" ,:"), bare=True)
        items, description_text = [*split(head, ","), *split(more, ",")], f"{about} {after}"
    elif rest[:1] == ":":
        items, description_text = [], rest[1:]
    elif rest[:1] in (",", "", "—", "–") or rest[:2] in ("--", "- ") or _goes_on(rest, kind):
        head, description_text = _described(f" {rest.lstrip(', ')}")
        items = split(head, ",")
    elif word[1].lower() in TYPES:
        items, description_text = [], line  # a sentence that begins with its type
    else:
        return None
    return _read_params(kind, word, items, description_text)


def _by_end(line: str) -> ParamNotation | None:
    """Parse a text that ends with type and requirement in parentheses."""
    found = _AT_END.search(line)
    word = _WORD.match(found[1]) if found is not None else None
    kind = _KIND.get(word[1].lower()) if word is not None else None
    if found is None or word is None or kind is None or found[1][word.end() :].lstrip()[:1] not in (",", ""):
        return None
    return _read_params(kind, word, split(found[1][word.end() :].lstrip(", "), ","), line[: found.start()])


def _read_params(
    kind: Mapping[str, Any], word: re.Match[str], items: list[str], description_text: str
) -> ParamNotation:
    schema = dict(kind)
    if word[3]:
        schema = {"type": "array", "items": schema}
    if word[2]:
        schema["items"] = dict(_KIND.get(word[2].lower(), {}))
    name = schema["type"]
    required, unknown = False, []
    for item in filter(None, items):
        found = _REQUIREMENT.fullmatch(item)
        first, _, rest = item.partition(" ")
        if found is not None:
            required = _requires(found)
        elif _REQUIREMENT.fullmatch(first) is not None and read_constraint(rest, name, schema):
            required = first.lower() in ("required", "mandatory")
        elif not read_constraint(item, name, schema):
            unknown.append(item)
    if word[4]:
        required = False
    about = ", ".join(unknown)
    return ParamNotation(schema, required, " ".join(f"{about} {description_text}".split()).strip(" -:—–"))


def _requires(found: re.Match[str]) -> bool:
    return (found[1].lower() in ("required", "mandatory")) is not ((found[2] or "").lower() == "false")


def _goes_on(rest: str, kind: Mapping[str, Any]) -> bool:
    """Return True if a requirement or the items of an array follow a type without a comma."""
    first = split(rest, ",")[0].partition(" ")[0]
    return _REQUIREMENT.fullmatch(first) is not None or (first == "of" and kind["type"] == "array")


def _described(text: str, *, bare: bool = False) -> tuple[str, str]:
    """Split a text at the separator of its description; with `bare`, text without a separator is the description."""
    for separators in (_DASH, _HYPHEN):
        for found in separators.finditer(text):
            if found[0][0] != '"':
                return text[: found.start()], text[found.end() :]
    return ("", text) if bare else (text, "")


def _parentheses(text: str) -> tuple[str, str]:
    level = 0
    for at, letter in enumerate(text):
        level += (letter == "(") - (letter == ")")
        if level == 0:
            return text[1:at], text[at + 1 :]
    return text[1:], ""
