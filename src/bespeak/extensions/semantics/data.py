"""Translation of inputs and outputs between the vocabularies of two services, through the mappings of artifacts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from bespeak.contract.core_ontology import XSD
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.view import SchemaView
from bespeak.extensions.semantics.alignment.names import PROPERTY_WORDS, words_of
from bespeak.extensions.semantics.alignment.values import ValueFault, parse_text, translate_value
from bespeak.extensions.semantics.profile import Violation
from bespeak.extensions.semantics.rules import UNTRANSLATED
from bespeak.extensions.semantics.terms import Ontology, OntologyRef, Term
from bespeak.extensions.semantics.translation import Translation, TranslationStep, UsedMapping
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.source.pointer import child

_DEEPEST: Final = 32  # levels of objects and lists that are translated
_DEEPEST_PLANNED: Final = 4  # levels of objects whose translation is planned before the call
_MOST_FAULTS: Final = 20
_MOST_PLANNED: Final = 500  # members of a schema whose translation is planned before the call
_LONGEST: Final = 200  # characters of a name that a vocabulary may have
_INTEGERS: Final = frozenset(
    f"{XSD}{name}"
    for name in ("integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger", "unsignedInt")
)

_ITEMS: Final = "items"  # member with the items of a stream that is answered at once

Find = Callable[[str], Translation | None]
Steps = tuple[TranslationStep, ...]
Answer = tuple[str, Steps] | str
"""The name of a member in the other vocabulary, with the mappings of its values; or why there is none."""


@lru_cache(4_096)
def _key(name: str) -> tuple[str, ...]:
    return words_of(name, PROPERTY_WORDS)


def _keys(term: Term) -> set[tuple[str, ...]]:
    return {_key(name) for name in (term.local_name, *term.labels) if name.strip() and len(name) <= _LONGEST}


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
        if len(name) > _LONGEST:
            return []
        found = [name] if name in self.terms else index.get(_key(name), [])
        return [iri for iri in found if self.terms[iri].local_name == name] or found


class _Level:
    """The members of one place in a schema. A service writes them in its own words."""

    def __init__(self, view: SchemaView) -> None:
        self.view = view
        self.members = {field.name: field for each in view.alternatives for field in each.fields}
        self.answers: dict[str, Answer] = {}  # of members, by their names in the data
        self._keys: dict[tuple[str, ...], list[str]] = {}
        for name in self.members:
            self._keys.setdefault(_key(name[:_LONGEST]), []).append(name)
        self._below: dict[str, _Level] = {}

    def named_by(self, term: Term) -> list[str]:
        """Return the members that a term may stand for: that with its name, else those with its words or labels."""
        if term.local_name in self.members:
            return [term.local_name]
        own = self._keys.get(_key(term.local_name[:_LONGEST]))
        return own or sorted({name for key in _keys(term) for name in self._keys.get(key, ())})

    def below(self, name: str) -> _Level:
        if name not in self.members:
            return _UNDECLARED
        if name not in self._below:
            self._below[name] = _Level(SchemaView(self.members[name].schema, self.view))
        return self._below[name]

    @property
    def items(self) -> _Level:
        if "" not in self._below:
            views = (one for one in self.view.alternatives if "items" in one.keywords)
            self._below[""] = _Level(next(views, self.view).items)
        return self._below[""]


_UNDECLARED: Final = _Level(SchemaView({}, {}))


class DataTranslation:
    """How the data of one endpoint are translated for callers of one vocabulary."""

    def __init__(self, find: Find, back: Find, source: Words, target: Words, endpoint: Endpoint) -> None:
        """Plan the translation; `find` translates a term of the caller's, `back` one of the service's."""
        self._find, self._back = _sharing(find, target), _sharing(back, source)
        self._source, self._target = source, target
        self._takes = _Level(SchemaView(endpoint.input_schema, endpoint.input_schema))
        gives = _Level(SchemaView(endpoint.output_schema, endpoint.output_schema))
        self._streams = endpoint.streams
        # The list around the items of a stream is a form of the answer, not a word of the service.
        self._gives = gives.below(_ITEMS).items if endpoint.streams else gives
        self.missing: list[Violation] = []  # outputs that the caller could not read, and inputs that it could not send
        self.used: dict[str, UsedMapping] = {}  # mappings of properties by their source
        self.inputs: dict[str, str] = {}  # members of the input by the caller's names
        self.outputs: dict[str, str] = {}  # the caller's names by members of the output
        for at, level, name in _declared(self._takes):
            sent = self._placed(name, level)
            if isinstance(sent, str):
                if not at and level.members[name].required:
                    self.missing.append(_cannot(child(at, name), name, sent))
            elif sent[1]:
                first, found = sent[1][0].source, self._find(sent[1][0].source)
                assert found is not None, "the steps are of this translation"
                self.used[first] = UsedMapping(first, found)
                self.inputs[source.terms[first].local_name] = name
        told: set[str] = set()
        for at, level, name in _declared(self._gives):
            answer = self._leaving(name, level)
            shown = f"{at}/{answer[0]}"
            if isinstance(answer, str) or shown in told:
                why = answer if isinstance(answer, str) else f"another output means {answer[0]} too"
                self.missing.append(_cannot(child(at, name), name, why))
                continue
            told.add(shown)
            if answer[1] and (outgoing := self._back(answer[1][0].source)) is not None:
                self.used[answer[1][0].source] = UsedMapping(answer[1][0].source, outgoing)
                self.outputs[name] = answer[0]

    def read(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[Violation]]:
        """Translate an input into the words of the service, with what cannot be translated."""
        reading = _Walk(self._incoming, self._find, self._source, self._target)
        return reading.object(given, self._takes, "", 0), reading.faults

    def read_texts(self, given: Mapping[str, str], *, in_path: bool) -> tuple[dict[str, Any], list[Violation]]:
        """Translate parameters of a query, or of a path, whose names are those of the service."""
        member = self._placed if in_path else self._incoming
        reading = _Walk(member, self._find, self._source, self._target, texts=True)
        return reading.object(given, self._takes, "", 0), reading.faults

    def place(self, given: Mapping[str, Any], names: Collection[str]) -> tuple[dict[str, Any], list[Violation]]:
        """Give the members of an input that belong into the path their names there; their values stay as they are."""
        placed: dict[str, Any] = {}
        faults: list[Violation] = []
        for name, value in given.items():
            answer = self._incoming(name, self._takes)
            if isinstance(answer, str):
                if name in names:
                    faults.append(_cannot(child("", name), value, answer))
                placed[name] = value
            else:
                placed[answer[0] if answer[0] in names else name] = value
        return placed, faults

    def write(self, output: Any) -> tuple[Any, list[Violation]]:
        """Translate an output into the words of the caller, with what cannot be translated."""
        if not self._streams:
            return self.write_item(output)
        written = [self.write_item(one) for one in output.get(_ITEMS, ())]
        faults = [one for _, found in written for one in found][:_MOST_FAULTS]
        return {**output, _ITEMS: [one for one, _ in written]} if written else output, faults

    def write_item(self, item: Any) -> tuple[Any, list[Violation]]:
        """Translate one item of a stream; the whole output of any other endpoint."""
        writing = _Walk(self._leaving, self._back, self._target, self._source, leaving=True)
        return writing.value(item, self._gives, (), "", 0), writing.faults

    def _incoming(self, name: str, level: _Level) -> Answer:
        """Return the service's member for one of the caller."""
        iris = self._source.properties(name)
        if not iris:
            # Both vocabularies may use plain words that neither of them declares.
            if self._target.properties(name):
                return f"it is a word of {self._target.id}, and {self._source.id} does not declare it"
            known = name in level.members or not level.members
            return (name, ()) if known else f"neither {self._source.id} nor this endpoint has it"
        fault = f"no usable mapping leads from {iris[0]} to {self._target.id}"
        found: dict[str, Steps] = {}
        for translation in filter(None, map(self._find, iris)):
            term = self._target.terms.get(translation.iri)
            found |= dict.fromkeys(level.named_by(term) if term else (), translation.steps)
            fault = f"it means {translation.iri}, which this endpoint does not take here"
        return _only(found) if found else fault

    def _placed(self, name: str, _: _Level) -> Answer:
        """Return the mappings of a member whose place has the name of the service, such as a parameter of a path."""
        iris = self._target.properties(name)
        for translation in filter(None, map(self._back, iris)):
            forth = self._find(translation.iri)
            if forth is not None and forth.iri in iris and translation.iri in self._source.terms:
                return name, forth.steps
        return f"nothing of {self._source.id} means {iris[0]}" if iris else (name, ())

    def _leaving(self, name: str, _: _Level) -> Answer:
        iris = self._target.properties(name)
        if not iris:
            if self._source.properties(name):
                return f"{self._source.id} declares it, and {self._target.id} does not say what it means"
            return name, ()
        found = {
            self._source.terms[one.iri].local_name: one.steps
            for one in filter(None, map(self._back, iris))
            if one.iri in self._source.terms
        }
        return _only(found) if found else f"nothing of {self._source.id} means {iris[0]}"


def _sharing(find: Find, other: Words) -> Find:
    """Let a term that the other vocabulary declares as well stand for itself."""

    def found(iri: str) -> Translation | None:
        if iri not in other.terms:
            return find(iri)
        same = OntologyRef(other.id, "")
        return Translation(iri=iri, ontology=same, relation="equivalent", confidence=1.0, steps=())

    return found


def _only(found: Mapping[str, Steps]) -> Answer:
    first, *others = found.items()
    return f"it may mean {' or '.join(sorted(found))}" if others else first


def _declared(level: _Level) -> Iterator[tuple[str, _Level, str]]:
    """Yield the declared members of a schema: the place of their object, its level, and the name."""
    waiting = [(level, "", 0)]
    count = 0
    while waiting:
        here, at, depth = waiting.pop()
        if "array" in here.view.types and depth < _DEEPEST:
            waiting.append((here.items, at, depth + 1))
        for name in here.members:
            count += 1
            if count > _MOST_PLANNED:
                return
            yield at, here, name
            if depth < _DEEPEST_PLANNED:
                waiting.append((here.below(name), child(at, name), depth + 1))


class _Walk:
    """One walk through data."""

    def __init__(
        self,
        member: Callable[[str, _Level], Answer],
        find: Find,
        words: Words,
        others: Words,
        *,
        leaving: bool = False,
        texts: bool = False,
    ) -> None:
        """Begin a walk; `texts` are values of a path or a query, which may stand for numbers."""
        self._member, self._find = member, find
        self._words, self._others = words, others
        self._leaving, self._texts = leaving, texts
        self.faults: list[Violation] = []

    def object(self, given: Mapping[str, Any], level: _Level, at: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in given.items():
            if len(self.faults) >= _MOST_FAULTS:
                break  # the rest is not worth the work
            place, answer = child(at, name), self._answer(name, level)
            if isinstance(answer, str):
                self._fail(place, value, answer)
            elif answer[0] in found:
                self._fail(place, value, f"another member means {answer[0]} too")
            else:
                member, steps = answer
                below = level.below(name if self._leaving else member)
                found[member] = self.value(value, below, steps, place, depth + 1)
        return found

    def _answer(self, name: str, level: _Level) -> Answer:
        if not self._leaving or name not in level.members:
            return self._member(name, level)
        if name not in level.answers:
            level.answers[name] = self._member(name, level)
        return level.answers[name]

    def value(self, value: Any, level: _Level, steps: Steps, at: str, depth: int) -> Any:
        if isinstance(value, dict | list) and depth > _DEEPEST:
            self._fail(at, None, f"it is nested more than {_DEEPEST} levels deep")
            return value
        if isinstance(value, list):
            return [self.value(one, level.items, steps, child(at, place), depth + 1) for place, one in enumerate(value)]
        mapped = [(step.values, step.inverted) for step in steps if step.values is not None]
        if isinstance(value, dict) and not mapped:
            return self.object(value, level, at, depth)
        found = value
        try:
            for place, (values, inverted) in enumerate(mapped):
                if self._texts and place == 0:
                    found = parse_text(found, values, inverted=inverted)
                found = translate_value(found, values, inverted=inverted)
            if mapped and isinstance(found, float) and self._is_whole(level, steps[-1].target):
                raise ValueFault(f"{brief(value)} would be {found}, and a whole number is needed")
        except ValueFault as fault:
            self._fail(at, value, str(fault))
        if not mapped and steps and isinstance(value, str) and level.view.values is not None:
            return self._named(value, level.view.values, at)
        return found

    def _is_whole(self, level: _Level, iri: str) -> bool:
        """Return True if the vocabulary, or the schema of the service, has only whole numbers in this place."""
        term = self._others.terms.get(iri)
        whole = not self._leaving and "integer" in level.view.types and "number" not in level.view.types
        return whole or (term is not None and not _INTEGERS.isdisjoint(term.ranges))

    def _named(self, value: str, listed: list[Any], at: str) -> str:
        """Translate a listed value that names an individual or a class."""
        iris = self._words.values(value)
        found = {one.iri for one in map(self._find, iris) if one is not None}
        if len(found) != 1:
            if iris or (not self._leaving and value not in listed):
                self._fail(at, value, "no usable mapping is for this value" if not found else "it has several meanings")
            return value
        term = self._others.terms[found.pop()]
        if self._leaving:
            return term.local_name
        keys = _keys(term)
        return next((one for one in listed if isinstance(one, str) and _key(one[:_LONGEST]) in keys), term.local_name)

    def _fail(self, at: str, value: Any, why: str) -> None:
        if len(self.faults) < _MOST_FAULTS:
            self.faults.append(_cannot(at, value, why))


def _cannot(at: str, value: Any, why: str) -> Violation:
    # The reason is written in full, because it names what a person has to map.
    message = f"{at or 'the value'} cannot be translated: {why}"
    return Violation(UNTRANSLATED.id, at, None if value is None else brief(value), message, UNTRANSLATED.reason)
