"""Slots: what an instruction may fill in the input of an endpoint, with the words by which each is recognised.

Sections of `data/words.txt`: `roles` are words of field names by what they stand for, `from` and `to` those of the two
ends of a range, `units` name units of time and money, `synonyms` are groups of words for the same choice, `opposites`
are pairs, `flags` are words of the name of a boolean that say nothing about its subject.
"""

from __future__ import annotations

import pkgutil
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.contract.schema.view import SchemaView
from bespeak.text.bounded_cache import BoundedCache
from bespeak.text.identifiers import apart
from bespeak.text.language.lexicon import THINGS
from bespeak.text.language.names import stem
from bespeak.text.reading.table import as_texts

MOST_SLOTS: Final = 400  # limit of fields that are read from one schema
_MOST_CHOICES: Final = 200  # limit of listed values of one field; a schema with many fields shares 2,000
_MOST_HINTS: Final = 12
_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


@lru_cache(maxsize=8192)
def root(word: str) -> str:
    """Return what the forms of a word share; those of short words too: name and names."""
    short = stem(word).rstrip("e")
    return short if len(short) > 2 else stem(word)


@cache
def _sections(name: str) -> dict[str, str]:
    data = pkgutil.get_data("bespeak.agent.arguments", f"data/{name}")
    assert data is not None
    sections = (section.partition("]\n") for section in data.decode().split("\n[")[1:])
    return {title: text for title, _, text in sections}


@cache
def listed(section: str, file: str = "words.txt") -> frozenset[str]:
    """Return the words of a section, or its names that are separated by semicolons."""
    text = _sections(file)[section]
    return frozenset(name.strip() for name in text.split(";")) if ";" in text else frozenset(text.split())


@cache
def stemmed(section: str) -> frozenset[str]:
    """Return the stems of the words of a section."""
    return frozenset(map(root, listed(section)))


@cache
def word_roles(section: str = "roles") -> Mapping[str, tuple[str, ...]]:
    """Return the roles of each stem in a section of rows such as `place: city town`."""
    found: dict[str, tuple[str, ...]] = {}
    for line in _sections("words.txt")[section].strip().splitlines():
        role, _, words = line.partition(": ")
        for word in words.split():
            found[root(word)] = (*found.get(root(word), ()), role)
    return found


@lru_cache(maxsize=4)
def _synonyms(section: str = "synonyms") -> Mapping[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for line in _sections("words.txt")[section].strip().splitlines():
        group = frozenset(map(root, line.split()))
        for word in group:
            found[word] = found.get(word, frozenset()) | group
    return found


@cache
def _things() -> Mapping[str, tuple[int, ...]]:
    return {root(word): groups for word, groups in THINGS.items()}


@lru_cache(maxsize=512)
def related(words: frozenset[str]) -> frozenset[str]:
    """Return stems with those of other words for the same things."""
    found = set(words)
    groups = {group for word in found for group in _things().get(word, ())}
    return frozenset(found | {word for word, of in _things().items() if not groups.isdisjoint(of)})


def stems(text: str) -> list[str]:
    """Return the stems of the words of a text or a name."""
    return [root(word) for word in _WORD.findall(apart(text[:1_000]))]


def similar(one: str, other: str) -> bool:
    """Return True if two stems are synonyms, or one begins with the other: director and direct."""
    short, long = sorted((one, other), key=len)
    if long.startswith(short) and (len(short) >= 4 or (len(short) == 3 and len(long) >= 7)):
        return True
    if other in _synonyms().get(one, ()):
        return True
    return not set(_things().get(one, ())).isdisjoint(_things().get(other, ()))


class Phrase(NamedTuple):
    """Words that stand for a value."""

    words: tuple[str, ...]
    value: Any
    weight: str  # exact as the contract says it, hint, synonym, part, or head for the last word of a name


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A field of the input: a value, or a list of values."""

    path: tuple[str, ...]
    schema: Mapping[str, Any]  # the effective keywords of one value
    family: str  # flag, choice, number, date, time, datetime, duration, text, or list for what is not understood
    many: bool
    required: bool
    words: tuple[str, ...]  # stems of the name
    said: frozenset[str]  # stems of the description
    roles: tuple[str, ...]
    hinted: tuple[str, ...]  # roles by the description alone
    edge: str  # from, to or ""
    units: frozenset[str]
    phrases: tuple[Phrase, ...]
    patterns: tuple[re.Pattern[str], ...]  # hints with a place for the value

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def description(self) -> str:
        return str(self.schema.get("description", ""))


def slots_of(endpoint: Endpoint) -> tuple[Slot, ...]:
    """Return the slots of an endpoint in the order of its schema; equal contracts share them."""
    hints = endpoint.semantic.parameter_hints
    try:
        key = msgspec.json.encode((endpoint.input_schema, hints, endpoint.path))
    except (TypeError, ValueError, RecursionError):
        return ()
    found = _kept.get(key)
    return _kept.put(key, _slots(key)) if found is None else found


_kept: Final = BoundedCache[tuple["Slot", ...]](4_000_000)


def _slots(key: bytes) -> tuple[Slot, ...]:
    try:
        schema, hints, path = msgspec.json.decode(key)
    except (ValueError, RecursionError):
        return ()
    view = SchemaView(schema, schema)
    found: list[Slot] = []
    most = min(_MOST_CHOICES, 2_000 // max(len(view.fields), 1) + 5)
    for field in view.fields[:MOST_SLOTS]:
        if len(found) >= MOST_SLOTS:
            break
        inner = SchemaView(field.schema, view)
        fields = inner.fields if inner.kind in ("object", "") else []
        if fields:  # nested one level: deeper objects are left to whoever wrote the instruction
            for each in fields[:MOST_SLOTS]:
                within, required = SchemaView(each.schema, view), field.required and each.required
                found.append(_slot((field.name, each.name), within, required, hints, most))
        else:
            found.append(_slot((field.name,), inner, field.required, hints, most))
    declared = {slot.path[0] for slot in found}
    text = SchemaView({"type": "string"}, view)
    found += [
        _slot((name,), text, True, hints, most) for name in re.findall(r"\{(\w+)\}", path) if name not in declared
    ]
    return tuple(_paired(found[:MOST_SLOTS]))


def _paired(slots: list[Slot]) -> Iterable[Slot]:
    """Turn the ends round where a stay begins with an arrival: a journey ends with it. A place alone is not an end."""
    texts = {slot.edge for slot in slots if slot.family == "text"}
    ends = [next((end for end in ("arriv", "depart") if end in slot.name.lower()), "") for slot in slots]
    stays = "arriv" in ends and "depart" in ends[ends.index("arriv") :]
    for slot, end in zip(slots, ends, strict=True):
        if "arriv" in ends and end and slot.name == slots[ends.index(end)].name:
            yield replace(slot, edge="from" if (end == "arriv") == stays else "to")
        else:
            yield slot if slot.family != "text" or {"from", "to"} <= texts else replace(slot, edge="")


def _slot(path: tuple[str, ...], view: SchemaView, required: bool, hints: Mapping[str, Any], most: int) -> Slot:
    many = view.kind == "array"
    item = view.items if many else view
    keywords = {**item.keywords}
    described = " ".join(
        as_texts([keywords.get("title"), keywords.get("description"), view.keywords.get("description")])
    )
    words, own = tuple(word for part in path for word in stems(part)), tuple(stems(path[-1]))
    spoken = stems(described)
    roles, family = _roles(own, words), _family(item, keywords, own, described)
    hint = next((hints[name] for name in (".".join(path), path[-1], path[0]) if name in hints), ())
    hinted = dict.fromkeys(role for word in spoken[:12] for role in word_roles().get(word, ()) if role not in roles)
    if any("." in part for part in path):
        family = "list"  # in the name of an argument, a dot stands before a member
    phrases, patterns = _hints(hint, family)
    known = _choices(item, keywords, most) if family == "choice" else _flag_phrases(own) if family == "flag" else ()
    return Slot(
        path=path,
        schema={"description": described, **keywords} if described else keywords,
        family=family,
        many=many,
        required=required,
        words=words,
        said=frozenset(spoken),
        roles=roles,
        hinted=tuple(hinted),
        edge=_edge(own, described),
        units=frozenset(unit for word in (*own, *spoken) for unit in word_roles("units").get(word, ())),
        phrases=(*known, *phrases),
        patterns=patterns,
    )


def _roles(own: tuple[str, ...], words: tuple[str, ...]) -> tuple[str, ...]:
    """Return what a name stands for, by its last telling word first; `id` and `name` also count if nothing else."""
    if "of" in own:  # number_of_guests: what follows is what is counted
        own = (*own[own.index("of") + 1 :], *own[: own.index("of")])[::-1]
    found = [role for word in reversed(own) for role in word_roles().get(word, ())]
    if not found:
        found = [role for word in reversed(words) for role in word_roles().get(word, ())]
    if own == ("nam",):  # that of a customer is a person's; alone it may be either
        found = [role for word in words[:-1] for role in word_roles().get(word, ())] or ["person", "title"]
    return tuple(dict.fromkeys(found))[:6]


def _family(item: SchemaView, keywords: Mapping[str, Any], own: tuple[str, ...], described: str) -> str:
    values = [value for value in item.values or () if value is not None]
    if values:
        return "flag" if {type(value) for value in values} == {bool} else "choice"
    if item.kind in _FAMILIES:
        return _FAMILIES[item.kind]
    form = str(keywords.get("format", ""))
    if form:
        return form.replace("-", "") if form in ("date", "time", "date-time", "duration") else "text"
    return _by_pattern(keywords.get("pattern")) or _dated(own, described)


_FAMILIES: Final = {"boolean": "flag", "integer": "number", "number": "number", "array": "list", "object": "list"}
_EXAMPLES: Final = (("datetime", "2026-12-31T19:30:00"), ("date", "2026-12-31"), ("time", "19:30"))
_NAMES: Final = (
    ("datetime", r"\b(datetim|timestamp)$|\bdate?\b.*\btime?\b|\btime?\b.*\bdate?\b"),
    ("date", r"\b(dat|day|birthday|dob|deadlin)$|\bdate\b"),
    ("time", r"^(?!.*\bzon\b).*\b(time?|hour)$"),
)
_DESCRIPTIONS: Final = (
    ("datetime", r"yyyy-mm-ddthh|iso.?8601 (date ?and ?time|date-?time|timestamp)|\bdate and time\b|\bdatetime\b"),
    ("date", r"yyyy-?mm-?dd|dd[/.]mm[/.]yyyy|mm/dd/yyyy|^(the )?(date|day) (of|on|when|to|for)\b"),
    ("time", r"\bhh:mm\b|^(the )?time (of|at|when|to)\b|\btime of day\b"),
)


def _by_pattern(pattern: Any) -> str:
    """Return the family of a text whose pattern demands the form of a date or a time."""
    compiled = compile_schema({"pattern": pattern}) if isinstance(pattern, str) else None
    if not isinstance(compiled, Validator) or compiled.is_valid("Ab-c d") or compiled.is_valid("A1"):
        return ""
    return next((family for family, example in _EXAMPLES if compiled.is_valid(example)), "")


def _dated(own: tuple[str, ...], described: str) -> str:
    """Return the family of a text without format: one that its name or description calls a date or time is one."""
    if own[-1:] == ("at",) and len(own) > 1 and "where" not in stems(described):
        return "datetime"
    for rows, text in ((_NAMES, " ".join(own)), (_DESCRIPTIONS, described.lower())):
        for family, pattern in rows:
            if re.search(pattern, text):
                return family
    return "date" if "check" in own and {"in", "out"} & set(own) else "text"


def _edge(own: tuple[str, ...], described: str) -> str:
    if "check" in own and {"in", "out"} & set(own):
        return "from" if "in" in own else "to"
    for names in (own, [word for word in stems(described)[:6] if word not in _BARE_EDGES]):
        for edge in ("from", "to"):
            if any(word in stemmed(edge) for word in names):
                return edge
    return ""


_BARE_EDGES: Final = frozenset(
    ("to", "from", "until", "till", "befor", "after", "sinc", "max", "min", "sourc", "low", "due")
)
"""Words that make an end of a range only in a name: "the number of seats to reserve" is not one."""


_SLOT_IN_HINT: Final = re.compile(r"(?<![^\W_])(?:[A-Z]{1,12}(?![a-z])|\{\w+\}|<\w+>|\.\.\.|…)(?!\w)")


def _hints(hint: Any, family: str) -> tuple[tuple[Phrase, ...], tuple[re.Pattern[str], ...]]:
    """Split hints into phrases, and patterns such as "party of N" (AGIS 6.2)."""
    phrases: list[Phrase] = []
    patterns: list[re.Pattern[str]] = []
    if isinstance(hint, Mapping):  # phrases by value
        rows = [(text, value) for value, texts in hint.items() for text in _texts(texts)]
        return tuple(
            Phrase(tuple(stems(text)), value, "hint") for text, value in rows[: _MOST_HINTS * 4] if stems(text)
        ), ()
    for text in _texts(hint)[:_MOST_HINTS]:
        holes = list(_SLOT_IN_HINT.finditer(text))
        if len(holes) == 1 and len(text) > len(holes[0][0]) and len(text) < 100:
            before, after = text[: holes[0].start()], text[holes[0].end() :]
            value = r"(?P<value>\S(?:[^,;.!?]{0,60}?\S)?)" if before.strip() else r"(?P<value>[^\s,;.!?]{1,60})"
            patterns.append(re.compile(_literal(before) + value + (_literal(after) or r"(?!\w)"), re.IGNORECASE))
        elif stems(text):
            phrases.append(Phrase(tuple(stems(text)[:6]), True if family == "flag" else None, "hint"))
    return tuple(phrases), tuple(patterns)


def _literal(text: str) -> str:
    words = r"\s+".join(map(re.escape, text.split()))
    if not words:
        return ""
    edge = r"(?<!\w)" if text[0].isalnum() else r"\s+" if text[0].isspace() else ""
    return edge + words + (r"\s+" if text[-1].isspace() else r"(?!\w)" if text[-1].isalnum() else "")


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return list(as_texts(value)) if isinstance(value, list | tuple) else []


def _choices(item: SchemaView, keywords: Mapping[str, Any], most: int) -> tuple[Phrase, ...]:
    """Return the words of each listed value; a title or description in `oneOf` adds its own."""
    values = [value for value in item.values or () if isinstance(value, str | int | float)][:most]
    told = {
        str(option.get("const")): str(option.get("title") or "")
        for keyword in ("oneOf", "anyOf")
        for option in (keywords.get(keyword) or ())
        if isinstance(option, Mapping)
    }
    found: list[Phrase] = []
    for value in values:
        words = tuple(stems(str(value)))
        if not words:
            continue
        found.append(Phrase(words, value, "exact"))
        if title := stems(told.get(str(value), "")):
            found.append(Phrase(tuple(title), value, "exact"))
    shared = Counter(word for phrase in found for word in set(phrase.words))
    for phrase in tuple(found):
        if len(phrase.words) == 1:
            others = _synonyms().get(phrase.words[0], frozenset()) - shared.keys()
            found += [Phrase((word,), phrase.value, "synonym") for word in sorted(others)]
            continue
        own = [word for word in phrase.words if shared[word] == 1 and len(word) > 3 and word not in stemmed("empty")]
        found += [Phrase((word,), phrase.value, "part") for word in own]
    return tuple(found)


def _flag_phrases(own: tuple[str, ...]) -> tuple[Phrase, ...]:
    """Return the words that say that a boolean is true: those of its name, and their synonyms."""
    empty = frozenset().union(*map(stemmed, ("flags", "prepositions", "fillers", "empty")))
    negative = bool(own) and own[0] in ("no", "without", "exclud", "skip", "not")
    words = tuple(word for word in own if word not in empty and word not in stemmed("generic"))[1 if negative else 0 :]
    if not words:
        words = own[-1:]
    truth = not negative
    parts = [word for word in words if len(word) > 2] if len(words) > 1 else []
    told = [
        (word, value)
        for section, names, value in (("synonyms", words, truth), ("opposites", own, not truth))
        for name in names
        for word in sorted(_synonyms(section).get(name, ()))
        if word not in own
    ]
    return (
        Phrase(words, truth, "exact"),
        *(Phrase((word,), truth, "head" if word == words[-1] else "part") for word in parts),
        *(Phrase((word,), value, "synonym") for word, value in told),
    )
