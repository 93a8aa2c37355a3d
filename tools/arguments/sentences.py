"""Sentences with known arguments, made from the notation of familiar.txt and held-out.txt.

An endpoint is a paragraph: `@ METHOD /path Description.`, its parameters, and `>` with the ways to begin a request.
A parameter is `name|other names type! Description :: variant | variant`; `!` means required, brackets a list. `{city}`
is replaced by a value of that kind, `{=}` by one of the choices; `variant=value` says what the words mean.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from bespeak.agent.arguments.slots import listed
from bespeak.contract.endpoint import Endpoint, Semantic

HERE = Path(__file__).parent
NOW = datetime(2026, 11, 19, 10, 0, tzinfo=ZoneInfo("Europe/Berlin"))
_HOLE = re.compile(r"\{(\w+|=)\}")
_PREPOSITIONS = frozenset({"at", "by", "for", "from", "in", "on", "to", "under", "until", "with", "without"})
_UNKNOWN_TO_CONTRACT = 0.3  # share of the parameters left out of a contract that people mention all the same
_ADJECTIVE, _OBJECT, _OTHER = range(3)  # the order behind the verb
_NAMED = frozenset({"string", "number", "integer", "boolean", "date", "time", "datetime"})


@dataclass
class Parameter:
    """A row of an endpoint."""

    names: list[str]
    type: str
    required: bool
    description: str
    variants: list[str]
    choices: list[str]
    many: bool


@dataclass
class Template:
    """A paragraph."""

    method: str
    path: str
    description: str
    parameters: list[Parameter] = field(default_factory=list)
    openings: list[str] = field(default_factory=list)


@dataclass
class Gold:
    """A value that a sentence says, by its place or by what it means."""

    value: Any = None
    spans: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Sample:
    """A request for an endpoint, with the values of its parameters."""

    text: str
    endpoint: Endpoint
    gold: dict[str, Gold]


def read_templates(name: str) -> list[Template]:
    """Read the endpoints of a file."""
    found: list[Template] = []
    for line in (HERE / name).read_text("utf-8").splitlines():
        if line.startswith("@ "):
            method, path, description = line[2:].split(" ", 2)
            found.append(Template(method, path, description))
        elif line.startswith("> "):
            found[-1].openings = line[2:].split(" | ")
        elif line and not line.startswith("#"):
            head, _, variants = line.partition("::")
            names, type_, *rest = head.strip().split(" ", 2)
            choices = re.search(r"enum\((.*?)\)", type_)
            found[-1].parameters.append(
                Parameter(
                    names.split("|"),
                    type_.rstrip("!").strip("[]").rstrip("!"),
                    "!" in type_,
                    rest[0] if rest else "",
                    [one.strip() for one in variants.split(" | ") if one.strip()],
                    choices[1].split("/") if choices else [],
                    type_.startswith("["),
                )
            )
    return found


def _begins_with_verb(opening: str) -> bool:
    """Return True for `book a table`, which may follow `could you`; False for `I need a table` and `directions`."""
    return opening.split(maxsplit=1)[0].lower() in listed("verbs")


class Writer:
    """Writes random samples; the same seed writes the same ones."""

    def __init__(self, seed: int) -> None:
        self._source = random.Random(seed)
        rows = (line.split(": ", 1) for line in (HERE / "fillers.txt").read_text("utf-8").splitlines() if line)
        self._fillers = {name: values.split("; ") for name, values in rows}
        self._templates = read_templates("familiar.txt")
        self._places = sorted(name for name in listed("places", "names.txt") if len(name) > 3)
        self._first = sorted(listed("first", "names.txt"))

    def samples(self, template: Template, variants: int, each: int) -> Iterator[Sample]:
        """Yield samples of an endpoint in several wordings of its contract."""
        for _ in range(variants):
            endpoint, names = self._endpoint(template)
            for _ in range(each):
                yield self._sample(template, endpoint, names)

    def _endpoint(self, template: Template) -> tuple[Endpoint, list[str]]:
        """Return the contract with random names of its parameters; some are left out, some are not described."""
        source, taken, names, properties, required = self._source, set(), [], {}, []
        bare, styled = source.random() < 0.3, source.random() < 0.2
        for parameter in template.parameters:
            free = [name for name in parameter.names if name not in taken]
            drop = source.random() < (0.16 if parameter.required else 0.25)
            name = "" if drop or not free else source.choice(free if source.random() < 0.6 else free[:1])
            taken.add(name)
            if name and styled:
                head, *tail = name.split("_")
                name = head + "".join(part.capitalize() for part in tail)
            names.append(name)
            if not name:
                continue
            schema: dict[str, Any] = _schema(parameter, plain=source.random() < 0.25)
            if not bare and parameter.description:
                schema["description"] = parameter.description
            properties[name] = schema
            if parameter.required:
                required.append(name)
        keys = list(properties)
        if source.random() < 0.3:
            source.shuffle(keys)
        intent = template.description if source.random() < 0.7 else ""
        hints = {name: _hints(one, source) for name, one in zip(names, template.parameters, strict=True) if name}
        hints = {name: texts for name, texts in hints.items() if texts and source.random() < 0.7}
        hints = hints if source.random() < 0.3 else {}
        semantic = Semantic(
            intent=intent,
            actor="agent",
            outcome="",
            confidence=0.9,
            impact="reversible",
            is_idempotent=False,
            parameter_hints=hints,
        )
        described = template.description if source.random() < 0.8 else ""
        schema = {"type": "object", "properties": {key: properties[key] for key in keys}, "required": required}
        path = (
            template.path if source.random() < 0.85 else "/" + source.choice(["items", "action", "request", "service"])
        )
        endpoint = Endpoint(
            method=template.method, path=path, description=described, semantic=semantic,
            input_schema=schema, output_schema={}, errors=(), handler=None,  # type: ignore[arg-type]
        )  # fmt: skip
        return endpoint, names

    def _sample(self, template: Template, endpoint: Endpoint, names: list[str]) -> Sample:
        source = self._source
        # Most people know what a service takes: they seldom mention what its contract has no parameter for.
        usable = [
            at
            for at, one in enumerate(template.parameters)
            if one.variants and (names[at] or source.random() < _UNKNOWN_TO_CONTRACT)
        ]
        count = min(len(usable), source.choice([0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 5]))
        weighted = sorted(usable, key=lambda at: source.random() * (0.6 if template.parameters[at].required else 1.0))
        chosen = weighted[:count]
        stray = self._stray(template) if source.random() < 0.1 else ""
        if source.random() < 0.7:
            chosen.sort()
        else:
            source.shuffle(chosen)
        opening = source.choice(template.openings)
        if source.random() < 0.4:
            leads = "opening" if _begins_with_verb(opening) else "greeting"
            opening = f"{source.choice(self._fillers[leads])} {opening}"
        text = opening[0].upper() + opening[1:]
        if source.random() < 0.2:
            text = f"{self._aside('before')} {text}"
        gold: dict[str, Gold] = {}
        segments = [
            (names[at], *self._segment(template.parameters[at], names[at] or template.parameters[at].names[0]))
            for at in chosen
        ]
        # What stands without a preposition is the object of the verb: it follows at once, or behind its adjective.
        segments.sort(key=lambda one: one[3])
        for place, (name, words, found, rank) in enumerate(segments):
            odds = [12, 2, 1, 1] if place else [24, 1, 1, 0]
            joint = source.choices((" ", ", ", ". ", " and "), odds)[0]
            if rank < _OTHER:
                is_next = place == 0 or segments[place - 1][3] < rank
                joint = " " if is_next else source.choice([", ", ". "])
            if joint == ". ":
                leads = ["It should be ", "Make it ", ""] if words.split()[0] in _PREPOSITIONS else [""]
                lead = source.choice(leads)
                joint += lead
            text += joint
            if joint == ". ":
                words = words[:1].upper() + words[1:]  # noqa: PLW2901
            for one in found.spans:
                gold.setdefault(name, Gold(found.value)).spans.append((one[0] + len(text), one[1] + len(text)))
            if not found.spans:
                gold[name] = found
            text += words
        text += stray and f" {stray}"
        gold.pop("", None)
        if source.random() < 0.3:
            text += source.choice([", ", ". "]) + self._aside("noise")
        text += source.choice(["", "", ".", ".", "?", "!"])
        if source.random() < 0.25:
            text = text.lower()
        return Sample(text, endpoint, gold)

    def _aside(self, kind: str) -> str:
        """Return words that say nothing about the request, though they may contain a name, a number or a date."""
        return _HOLE.sub(lambda hole: "".join(self._fill(hole[1])[::-1]), self._source.choice(self._fillers[kind]))

    def _stray(self, template: Template) -> str:
        """Return a wish that the endpoint has no parameter for: one of another endpoint, with another kind of value."""
        taken = {kind for one in template.parameters for variant in one.variants for kind in _HOLE.findall(variant)}
        other = self._source.choice(self._templates)
        usable = [
            one
            for one in other.parameters
            if one.variants and taken.isdisjoint(_HOLE.findall("".join(one.variants))) and one.type.startswith("str")
        ]
        if not usable or other.path == template.path:
            return ""
        parameter = self._source.choice(usable)
        return self._segment(parameter, parameter.names[0])[0]

    def _segment(self, parameter: Parameter, name: str) -> tuple[str, Gold, int]:
        """Return the words of one parameter with the places of its values, and whether it is a bare object."""
        source = self._source
        variant, equals, meaning = source.choice(parameter.variants).partition("=")
        if not equals or variant.endswith("{"):
            variant, meaning = (variant if not equals else f"{variant}={meaning}"), ""
        plain = _HOLE.search(variant)
        if plain and not meaning and source.random() < 0.12 and variant.count("{") == 1:
            spoken = re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name).lower()
            form = source.choice(
                ["with {} #", "{}: #", "{} is #", "the {} is #", "{} #", "set {} to #", "{} = #", "{} should be #"]
            )
            is_sayable = spoken and spoken not in _PREPOSITIONS
            variant = form.replace("#", plain[0]).replace("{}", spoken, 1) if is_sayable else variant
        words, gold, last = "", Gold(), 0
        for hole in _HOLE.finditer(variant):
            words += variant[last : hole.start()]
            if hole[1] == "=":
                value = source.choice(parameter.choices)
                gold.value = value
                words += value.replace("_", source.choice([" ", "-", " "]))
            else:
                text, lead = self._fill(hole[1])
                words += lead
                start = len(words)
                words += text
                gold.spans.append((start, len(words)))
            last = hole.end()
        words += variant[last:]
        if meaning:
            gold.value = (
                meaning == "true" if parameter.type == "boolean" else meaning.split(",") if parameter.many else meaning
            )
        is_object = variant.startswith("{") and parameter.type == "string" and not parameter.choices
        is_object = is_object and not variant.startswith("{currency}")  # stands behind its amount
        is_adjective = variant == "{=}" and not parameter.required and source.random() < 0.4
        return words, gold, _ADJECTIVE if is_adjective else _OBJECT if is_object else _OTHER

    def _fill(self, kind: str) -> tuple[str, str]:
        """Return a value of a kind, and the article that stands before it."""
        source = self._source
        if kind in self._fillers:
            text = source.choice(self._fillers[kind])
            if kind == "title" and source.random() < 0.3:
                text = text.capitalize()  # many write only the first word of a title large
            for article in ("a ", "the ", "an ", "my ", "our "):
                if text.startswith(article) and kind not in ("sentence", "task"):
                    return text[len(article) :], article
            return text, ""
        if kind in ("city", "person", "first", "last"):
            return self._name(kind), ""
        return getattr(self, f"_{kind}")(), ""

    def _coined(self) -> str:
        parts = [
            "bel",
            "tor",
            "vik",
            "mar",
            "sa",
            "lin",
            "ro",
            "den",
            "ka",
            "wes",
            "ham",
            "ville",
            "ton",
            "dro",
            "pel",
            "ni",
            "os",
            "ga",
        ]
        return "".join(self._source.choice(parts) for _ in range(self._source.choice([2, 2, 3]))).capitalize()

    def _name(self, kind: str) -> str:
        source = self._source
        if kind == "city":
            name = source.choice(self._places).title() if source.random() < 0.6 else self._coined()
            return (
                name
                if source.random() > 0.08
                else f"{source.choice(['San', 'New', 'Port', 'Fort', 'Saint'])} {self._coined()}"
            )
        first = source.choice(self._first).capitalize() if source.random() < 0.75 else self._coined()
        last = (
            self._coined()
            if source.random() < 0.7
            else source.choice(["Smith", "Miller", "Garcia", "Chen", "Brown", "Meyer", "Lopez"])
        )
        if kind == "last":
            return last
        return first if kind == "first" or source.random() < 0.3 else f"{first} {last}"

    def _doctor(self) -> str:
        return f"{self._source.choice(['Dr.', 'Dr', 'Dr.', 'Prof.'])} {self._name('last')}"

    def _n(self) -> str:
        number = self._source.choice([1, 2, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 10, 12])
        words = [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ]
        return words[number] if self._source.random() < 0.35 else str(number)

    def _large(self) -> str:
        source = self._source
        forms = (
            str(source.randrange(13, 99)),
            str(source.randrange(100, 900, 10)),
            f"{source.randrange(1, 60)},000",
            f"{source.randrange(1, 40)}.5",
            str(source.randrange(15, 30)),
        )
        return source.choice(forms)

    def _date(self) -> str:
        source = self._source
        day: date = (NOW + timedelta(days=source.randrange(1, 300))).date()
        weekday = source.choice(["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"])
        return source.choice([
            "tomorrow", "today", weekday, weekday, f"next {weekday}", f"this {weekday}", "the day after tomorrow",
            f"{day:%B} {day.day}", f"{day.day} {day:%B}", f"{day:%B} {day.day}th",
            f"the {day.day % 19 + 4}th of {day:%B}",
            f"{day:%b} {day.day}", f"{day:%Y-%m-%d}", f"{day:%d}.{day:%m}.{day:%Y}", f"{day:%B} {day.day}, {day.year}",
            f"the {day.day % 16 + 4}th", "next week", "in three days",
        ])  # fmt: skip

    def _time(self) -> str:
        source, hour = self._source, self._source.randrange(1, 12)
        forms = (
            f"{hour}pm", f"{hour} pm", f"{hour}:30 pm", f"{hour} am", f"{hour + 8}:15", "noon", f"{hour + 10}:00",
            f"half past {hour}", f"{hour} o'clock", f"{hour}:45 in the evening", f"{hour} in the morning",
            f"{hour}.30pm",
        )  # fmt: skip
        return source.choice(forms)

    def _money(self) -> str:
        source = self._source
        amount = source.choice(
            [
                str(source.randrange(5, 95)),
                f"{source.randrange(1, 20)}00",
                f"{source.randrange(10, 90)}.50",
                f"{source.randrange(1, 9)},500",
            ]
        )
        return source.choice(
            [
                f"${amount}",
                f"{amount} dollars",
                f"€{amount}",
                f"{amount} euros",
                f"{amount} USD",
                f"£{amount}",
                f"{amount} EUR",
                amount,
            ]
        )

    def _percent(self) -> str:
        number = self._source.choice(["3.5", "5", "10", "19", "4", "20", "7.5", "15"])
        return self._source.choice([f"{number}%", f"{number} percent", f"{number} %"])

    def _minutes(self) -> str:
        number = self._source.choice([5, 10, 15, 20, 30, 45, 60, 90])
        return self._source.choice(
            [f"{number} minutes", f"{number} min", f"{number} minutes", "an hour", "half an hour", "2 hours"]
        )

    def _email(self) -> str:
        domain = f"{self._coined()}.{self._source.choice(['com', 'org', 'example', 'io'])}"
        return f"{self._name('first')}.{self._coined()}@{domain}".lower()

    def _phone(self) -> str:
        return (
            self._source.choice(["+49 170 {:07d}", "555-0{:03d}-{:04d}", "+1 415 555 {:04d}", "(212) 555-{:04d}"])
            .format(self._source.randrange(10000), self._source.randrange(10000))
            .replace("555-00", "555-0")
        )

    def _code(self) -> str:
        source, number = self._source, self._source.randrange(100, 99999)
        forms = (
            f"A-{number}", f"{number}", f"INV-{number}", f"{source.choice('BCKXZ')}{number % 1000}", f"#{number}",
            f"{source.choice(['SAVE', 'ZX', 'TRK', 'CS'])}{number % 100}", f"{number}-{source.choice('ABC')}",
        )  # fmt: skip
        return source.choice(forms)

    def _year(self) -> str:
        return str(self._source.randrange(1960, 2026))

    def _version(self) -> str:
        source = self._source
        return source.choice(
            [
                f"v{source.randrange(1, 9)}.{source.randrange(20)}",
                f"{source.randrange(1, 9)}.{source.randrange(20)}.{source.randrange(9)}",
            ]
        )


def _hints(parameter: Parameter, source: random.Random) -> list[str]:
    """Return some of the ways to say a parameter, with N in place of its value."""
    usable = [one for one in parameter.variants if one.count("{") == 1 and "=" not in one and len(one.split()) > 1]
    return [_HOLE.sub("N", one) for one in source.sample(usable, min(2, len(usable)))]


def _schema(parameter: Parameter, *, plain: bool) -> dict[str, Any]:
    """Return the schema of a parameter; a plain one leaves the format to its name."""
    if parameter.choices:
        one: dict[str, Any] = {"type": "string", "enum": parameter.choices}
    elif parameter.type in _NAMED:
        formats = {"date": "date", "time": "time", "datetime": "date-time"}
        if parameter.type in formats:
            one = (
                {"type": "string"}
                if plain and parameter.type != "time"
                else {"type": "string", "format": formats[parameter.type]}
            )
            if parameter.type == "time" and len(parameter.description) % 2:  # some ask for a full time with its offset
                one = {"type": "string"} if plain else {"type": "string", "pattern": r"^\d\d:\d\d$"}
        else:
            one = {"type": parameter.type}
    else:
        one = {"type": "string", "format": parameter.type.partition("(")[2].rstrip(")")}
    return {"type": "array", "items": one} if parameter.many else one
