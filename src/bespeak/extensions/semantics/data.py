"""Translation of inputs and outputs between the vocabularies of two services, through the mappings of artifacts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.view import SchemaView
from bespeak.extensions.semantics.alignment.names import PROPERTY_WORDS, words_of
from bespeak.extensions.semantics.alignment.values import ValueFault, translate_value
from bespeak.extensions.semantics.profile import Violation
from bespeak.extensions.semantics.rules import UNTRANSLATED
from bespeak.extensions.semantics.terms import Ontology, Term
from bespeak.extensions.semantics.translation import Translation, TranslationStep, UsedMapping
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.source.pointer import child

_DEEPEST: Final = 16  # levels of objects and lists that are translated
_MOST_FAULTS: Final = 20
_MOST_PLANNED: Final = 500  # members of a schema whose translation is planned before the call

Find = Callable[[str], Translation | None]


def _key(name: str) -> tuple[str, ...]:
    return words_of(name, PROPERTY_WORDS)


class Words:
    """The terms of an ontology by the words that data have for them: ends of IRIs and labels."""

    def __init__(self, ontology: Ontology) -> None:
        self.id = ontology.id
        self.terms = ontology.terms
        self._properties: dict[tuple[str, ...], list[str]] = {}
        self._values: dict[tuple[str, ...], list[str]] = {}
        for iri in sorted(ontology.terms):
            term = ontology.terms[iri]
            found = self._properties if term.kind.endswith("property") else self._values
            for key in _keys(term):
                found.setdefault(key, []).append(iri)

    @property
    def has_properties(self) -> bool:
        return bool(self._properties)

    def properties(self, name: str) -> list[str]:
        return self._find(name, self._properties)

    def values(self, name: str) -> list[str]:
        return self._find(name, self._values)

    def _find(self, name: str, index: Mapping[tuple[str, ...], list[str]]) -> list[str]:
        """Return the terms that a name may stand for: those with exactly this name, else those with its words."""
        found = [name] if name in self.terms else index.get(_key(name), [])
        return [iri for iri in found if self.terms[iri].local_name == name] or found


def _keys(term: Term) -> set[tuple[str, ...]]:
    return {_key(name) for name in (term.local_name, *term.labels) if name.strip()}


class _Level:
    """The members of one place in a schema. A service writes them in its own words."""

    def __init__(self, view: SchemaView) -> None:
        self.view = view
        self.members = {field.name: field for each in view.alternatives for field in each.fields}
        self.keys: dict[tuple[str, ...], str] = {}
        for name in self.members:
            self.keys.setdefault(_key(name), name)
        self._below: dict[str, _Level] = {}

    def below(self, name: str) -> _Level | None:
        if name in self.members and name not in self._below:
            self._below[name] = _Level(SchemaView(self.members[name].schema, self.view))
        return self._below.get(name)

    @property
    def items(self) -> _Level:
        if "" not in self._below:
            views = (one for one in self.view.alternatives if "items" in one.keywords)
            self._below[""] = _Level(next(views, self.view).items)
        return self._below[""]


class DataTranslation:
    """How the data of one endpoint are translated for callers of one vocabulary."""

    def __init__(self, find: Find, back: Find, source: Words, target: Words, endpoint: Endpoint) -> None:
        """Plan the translation; `find` translates a term of the caller's, `back` one of the service's."""
        self._find, self._back = find, back
        self._source, self._target = source, target
        self._takes = _Level(SchemaView(endpoint.input_schema, endpoint.input_schema))
        self._gives = _Level(SchemaView(endpoint.output_schema, endpoint.output_schema))
        self.missing: list[Violation] = []  # outputs that the caller could not read
        self.used: dict[str, UsedMapping] = {}  # mappings of properties by their source
        self.inputs: dict[str, str] = {}  # members of the input by the caller's names
        self.outputs: dict[str, str] = {}  # the caller's names by members of the output
        for _, name, iris in self._declared(self._takes):
            for translation in filter(None, map(back, iris)):
                forth = find(translation.iri)
                if forth is not None and forth.iri in iris:
                    self.used[translation.iri] = UsedMapping(translation.iri, forth)
                    self.inputs[self._source.terms[translation.iri].local_name] = name
        for at, name, iris in self._declared(self._gives):
            outgoing = self._outgoing(iris)
            if outgoing is None:
                self.missing.append(_cannot(at, iris[0], f"nothing of {source.id} means {iris[0]}"))
            else:
                self.used[outgoing.steps[0].source] = UsedMapping(outgoing.steps[0].source, outgoing)
                self.outputs[name] = self._source.terms[outgoing.iri].local_name

    def read(self, given: dict[str, Any]) -> tuple[dict[str, Any], list[Violation]]:
        """Translate an input into the words of the service, with what cannot be translated."""
        reading = _Reading(self._incoming, self._find, self._source, self._target)
        return reading.object(given, self._takes, "", 0), reading.faults

    def write(self, output: Any) -> tuple[Any, list[Violation]]:
        """Translate an output into the words of the caller, with what cannot be translated."""
        writing = _Reading(self._leaving, self._back, self._target, self._source, leaving=True)
        return writing.value(output, self._gives, (), "", 0), writing.faults

    def _declared(self, level: _Level) -> Iterator[tuple[str, str, list[str]]]:
        """Yield the declared members that are properties of the service's vocabulary: place, name and terms."""
        waiting = [(level, "", 0)]
        count = 0
        while waiting and count < _MOST_PLANNED:
            here, at, depth = waiting.pop()
            if "array" in here.view.types and depth < _DEEPEST:
                waiting.append((here.items, at, depth + 1))
            for name in here.members:
                count += 1
                below = here.below(name)
                iris = self._target.properties(name)
                if iris:
                    yield child(at, name), name, iris
                if below is not None and depth < _DEEPEST // 4:
                    waiting.append((below, child(at, name), depth + 1))

    def _outgoing(self, iris: list[str]) -> Translation | None:
        found = [one for one in map(self._back, iris) if one is not None and one.iri in self._source.terms]
        return max(found, key=lambda one: one.confidence, default=None)

    def _incoming(self, name: str, level: _Level) -> tuple[str, tuple[TranslationStep, ...]] | str:
        """Return the service's member for one of the caller, with the mappings of its values, or why there is none."""
        iris = self._source.properties(name)
        if not iris:
            # Both vocabularies may use plain words that neither of them declares.
            known = name in level.members or not level.members
            return (name, ()) if known else f"neither {self._source.id} nor this endpoint has it"
        fault = f"no usable mapping leads from {iris[0]} to {self._target.id}"
        for translation in filter(None, map(self._find, iris)):
            term = self._target.terms.get(translation.iri)
            member = next((level.keys[key] for key in sorted(_keys(term)) if key in level.keys), None) if term else None
            if member is not None:
                return member, translation.steps
            fault = f"it means {translation.iri}, which this endpoint does not take here"
        return fault

    def _leaving(self, name: str, _: _Level) -> tuple[str, tuple[TranslationStep, ...]] | str:
        iris = self._target.properties(name)
        if not iris:
            return name, ()
        translation = self._outgoing(iris)
        if translation is None:
            return f"nothing of {self._source.id} means {iris[0]}"
        return self._source.terms[translation.iri].local_name, translation.steps


class _Reading:
    """One walk through data."""

    def __init__(
        self,
        member: Callable[[str, _Level], tuple[str, tuple[TranslationStep, ...]] | str],
        find: Find,
        words: Words,
        others: Words,
        *,
        leaving: bool = False,
    ) -> None:
        self._member, self._find = member, find
        self._words, self._others, self._leaving = words, others, leaving
        self.faults: list[Violation] = []

    def object(self, given: dict[str, Any], level: _Level, at: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in given.items():
            place = child(at, name)
            answer = self._member(name, level)
            if isinstance(answer, str):
                self._fail(place, value, answer)
                continue
            member, steps = answer
            if member in found:
                self._fail(place, value, f"another member means {member} too")
                continue
            below = level.below(name if self._leaving else member)
            found[member] = self.value(value, below, steps, place, depth + 1)
        return found

    def value(self, value: Any, level: _Level | None, steps: tuple[TranslationStep, ...], at: str, depth: int) -> Any:
        if isinstance(value, dict | list) and depth > _DEEPEST:
            self._fail(at, None, f"it is nested more than {_DEEPEST} levels deep")
            return value
        if isinstance(value, dict):
            return value if level is None else self.object(value, level, at, depth)
        if isinstance(value, list):
            items = None if level is None else level.items
            return [self.value(one, items, steps, child(at, number), depth + 1) for number, one in enumerate(value)]
        mapped = [step for step in steps if step.values is not None]
        try:
            for step in mapped:
                assert step.values is not None
                value = translate_value(value, step.values, inverted=step.inverted)
        except ValueFault as fault:
            self._fail(at, value, str(fault))
        if not mapped and steps and isinstance(value, str) and level is not None and level.view.values is not None:
            return self._named(value, level.view.values, at)
        return value

    def _named(self, value: str, listed: list[Any], at: str) -> str:
        """Translate a listed value that names an individual or a class."""
        iris = self._words.values(value)
        translation = next(filter(None, map(self._find, iris)), None)
        if translation is None:
            if iris or (not self._leaving and value not in listed):
                self._fail(at, value, "no usable mapping is for this value")
            return value
        term = self._others.terms[translation.iri]
        if self._leaving:
            return term.local_name
        keys = _keys(term)
        return next((one for one in listed if isinstance(one, str) and _key(one) in keys), term.local_name)

    def _fail(self, at: str, value: Any, why: str) -> None:
        if len(self.faults) < _MOST_FAULTS:
            self.faults.append(_cannot(at, value, why))


def _cannot(at: str, value: Any, why: str) -> Violation:
    # The reason is written in full, because it names what a person has to map.
    message = f"{at or 'the value'} cannot be translated: {why}"
    return Violation(UNTRANSLATED.id, at, None if value is None else brief(value), message, UNTRANSLATED.reason)
