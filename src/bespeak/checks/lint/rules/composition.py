"""H74x, Y83x: compositions and recipes call what exists, promise no more, and their values fit (AGTP-API 12.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from bespeak.checks.lint.subject import LintContext, Subject
from bespeak.contract.confirmation import needs_confirmation
from bespeak.contract.endpoint import IMPACTS, Endpoint
from bespeak.contract.grammar.syntax import check_path
from bespeak.contract.policy import Policies
from bespeak.contract.recipe import Condition, Paging, Recipe, RecipeStep, Source, sources_in
from bespeak.contract.schema.view import Members, json_type, members_of
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, brief
from bespeak.text.source.pointer import child

_AT: Final = "/handler/recipe"

STEP: Final = Rule("H740", "composition-step", "MUST", "AGTP-API 12.1, 13.2")
CYCLE: Final = Rule("H741", "composition-cycle", "MUST", "AGTP-API 12.1")
SIZE: Final = Rule("H742", "composition-size", "MUST", "AGTP-API 8.7, 12.1")
SCOPES: Final = Rule("H745", "composition-scopes", "MUST", "AGTP-API 10.4, 12.1")
PROMISE: Final = Rule("H746", "composition-impact", "MUST", "AGTP-API 7.1, 12.1, 16.1")
UNDO: Final = Rule("H747", "composition-undo", "MUST", "AGTP-API 12.1")
FUNCTION: Final = Rule("H749", "recipe-function", "MUST", "AGTP-API 12.1")

Key = tuple[str, str]


def check(
    endpoint: Endpoint, recipe: Recipe, called: Mapping[Key, Endpoint], policies: Policies, size: int
) -> Iterator[Diagnostic]:
    """Check a composition against the endpoints that it calls. `size` counts the steps of all levels."""
    steps = [called[step.endpoint] for step in recipe.steps]
    if size > policies.max_synthesis_depth:
        message = f"its recipe {brief(recipe.name)} makes {size} calls, and {policies.max_synthesis_depth} are allowed"
        yield SIZE.at(endpoint, _AT, message, "Use fewer steps, or raise policies.max_synthesis_depth.")
    needed = sorted({scope for each in called.values() for scope in each.required_scopes})
    missing = [scope for scope in needed if scope not in endpoint.required_scopes]
    if missing:
        message = f"its steps need the scopes {', '.join(missing)}, which it does not require"
        yield SCOPES.at(endpoint, "/required_scopes", message, "Add them to required_scopes.")
    yield from _check_promise(endpoint, steps)
    yield from _check_calls(endpoint, recipe, called, policies)


def _check_promise(endpoint: Endpoint, called: Sequence[Endpoint]) -> Iterator[Diagnostic]:
    declared = endpoint.semantic
    worst = max(called, key=lambda step: IMPACTS.index(step.semantic.impact))
    if IMPACTS.index(declared.impact) < IMPACTS.index(worst.semantic.impact):
        message = f"its impact is {declared.impact}, but its step {worst} is {worst.semantic.impact}"
        yield PROMISE.at(endpoint, "/semantic/impact", message, f"Write {worst.semantic.impact}.")
    unsafe = next((step for step in called if not step.semantic.is_idempotent), None)
    if declared.is_idempotent and unsafe is not None:
        message = f"it is declared idempotent, but its step {unsafe} is not"
        yield PROMISE.at(endpoint, "/semantic/is_idempotent", message, "Write false.")


def _check_calls(
    endpoint: Endpoint, recipe: Recipe, called: Mapping[Key, Endpoint], policies: Policies
) -> Iterator[Diagnostic]:
    for each in called.values():
        if each.missing is not None:
            message = f"its recipe calls {each}, for which this server lacks {each.missing}"
            yield STEP.at(endpoint, _AT, message, "Call another endpoint.")
        elif each.is_basic and each.semantic.impact != "informational":
            message = f"its recipe calls {each}, which is not for compositions"
            yield STEP.at(endpoint, _AT, message, "Call only built-in methods that change nothing.")
        elif not policies.methods.admits(each.method):
            message = f"its recipe calls {each}, but the policies do not allow {each.method}"
            yield STEP.at(endpoint, _AT, message, "Call an endpoint of an allowed method.")
    for number, step in enumerate(recipe.steps, 1):
        undone = None if step.compensate is None else called[step.compensate.endpoint]
        if undone is not None and needs_confirmation(undone, policies):
            message = f"step {number} of its recipe is undone by {undone}, which waits for a confirmation"
            yield UNDO.at(endpoint, _AT, message, "Undo it by a call that need not be confirmed.")


def missing_step(endpoint: Endpoint, recipe: Recipe, missing: Key, known: Sequence[str]) -> Diagnostic:
    """Report a call of an endpoint that does not exist; `known` are methods and paths that do."""
    number = next((number for number, step in enumerate(recipe.steps, 1) if step.endpoint == missing), None)
    caller = "its recipe" if number is None else f"step {number} of its recipe"
    message = f"{caller} {brief(recipe.name)} calls {brief(' '.join(missing))}, which this server does not serve"
    advice = f"Did you mean {', '.join(known)}?" if known else "Declare the endpoint, or correct the step."
    return STEP.at(endpoint, _AT, message, advice)


def cycle(endpoint: Endpoint, recipe: Recipe, others: Sequence[Endpoint]) -> Diagnostic:
    """Report a composition that calls itself, by way of `others`."""
    way = "".join(f" by way of {each}" for each in others[:1])
    return CYCLE.at(endpoint, _AT, f"its recipe {brief(recipe.name)} calls it again{way}", "Remove the step.")


_DEEPEST: Final = 8  # levels of objects that are compared; schemas may refer to themselves

_ABSENT: Final[Any] = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueKind:
    """What is known about a value. Without anything, every value is possible."""

    members: Members | None = None  # description by a schema
    fields: Mapping[str, ValueKind] | None = None  # fields of an object that the recipe itself makes
    constant: Any = _ABSENT
    is_list: bool = False  # True for a list whose elements the other members describe
    is_optional: bool = False  # True if the value may be missing

    @property
    def types(self) -> frozenset[str]:
        """JSON types; empty if every type is possible."""
        if self.is_list:
            return frozenset({"array"})
        if self.constant is not _ABSENT:
            return frozenset({json_type(self.constant)})
        if self.fields is not None:
            return frozenset({"object"})
        return self.members.types if self.members is not None else frozenset()

    @property
    def element(self) -> ValueKind:
        """Element of a list; for any other value the value itself, which counts as a list of one."""
        if self.is_list:
            return replace(self, is_list=False, is_optional=False)
        if self.constant is not _ABSENT and isinstance(self.constant, list):
            return ValueKind(constant=self.constant[0]) if self.constant else ValueKind()
        if self.members is not None and "array" in self.types:
            return ValueKind(members=self.members.element)
        return replace(self, is_optional=False)

    def field(self, name: str) -> ValueKind | str:
        """Return a field, of each element for a list; or why there is none."""
        if self.is_list or (self.members is not None and self.types == {"array"}):
            found = self.element.field(name)
            return found if isinstance(found, str) else found.listed
        if self.constant is not _ABSENT and isinstance(self.constant, dict):
            return ValueKind(constant=self.constant[name]) if name in self.constant else _no_field(name, self.constant)
        if self.fields is not None:
            return self.fields.get(name) or _no_field(name, self.fields)
        members = self.members
        if members is None:
            return ValueKind()
        if members.declares(name):
            return ValueKind(members=members.below(name), is_optional=self.is_optional or name not in members.required)
        if members.takes_any:
            return ValueKind()
        if members.types and not members.types & {"object", "array"}:
            return f"{brief(name)} is not in a value of type {' or '.join(sorted(members.types))}"
        return _no_field(name, members.reachable)

    @property
    def listed(self) -> ValueKind:
        """The list of such values. Lists inside become one list."""
        if self.is_list:
            return self
        return replace(self.element if "array" in self.types else self, is_list=True, is_optional=False)

    def follow(self, path: str) -> ValueKind | str:
        """Follow a dotted path; return what is wrong with it if it leads nowhere."""
        kind = self
        for name in path.split(".") if path else ():
            found = kind.field(name)
            if isinstance(found, str):
                return found
            kind = found
        return kind


def misfits(kind: ValueKind, wanted: Members, depth: int = 0) -> Iterator[str]:
    """Yield why no value of a kind can be valid where `wanted` describes it; the rest is checked at each call."""
    types = kind.types - {"null"}
    both_numbers = {"number", "integer"} <= types | wanted.types
    if types and wanted.types and types.isdisjoint(wanted.types) and not both_numbers:
        yield f"is {_named(types)}, and {_named(wanted.types)} is wanted"
        return
    if depth == _DEEPEST:
        return
    if wanted.types == {"array"} and wanted.element is not None and (kind.is_list or kind.members is not None):
        yield from (f"has elements of which each {text}" for text in misfits(kind.element, wanted.element, depth + 1))
        return
    if kind.is_list:
        return
    if kind.constant is not _ABSENT:
        if wanted.values and kind.constant not in wanted.values:
            yield f"is {brief(kind.constant)}, and one of {_listed(wanted.values)} is wanted"
        return
    if kind.members is not None:
        if kind.members.formats and wanted.formats and not kind.members.formats & wanted.formats:
            yield f"has the format {_listed(kind.members.formats)}, and {_listed(wanted.formats)} is wanted"
        if kind.members.values and wanted.values and not set(kind.members.values) & set(wanted.values):
            yield f"is one of {_listed(kind.members.values)}, and one of {_listed(wanted.values)} is wanted"
    if "object" in types:
        yield from _misfitting_fields(kind, wanted, depth)


def _misfitting_fields(kind: ValueKind, wanted: Members, depth: int) -> Iterator[str]:
    for name in wanted.names:
        found = kind.field(name)
        if isinstance(found, str):
            if name in wanted.required and not wanted.has_alternatives:
                yield f"has no {brief(name)}, which is required"
        else:
            yield from (f"has {brief(name)}, which {text}" for text in misfits(found, wanted.below(name), depth + 1))


def gaps(kind: ValueKind, wanted: Members, depth: int = 0) -> Iterator[tuple[str, ...]]:
    """Yield the paths of required fields whose value may be null, which is not allowed there; `[]` is each element."""
    if depth == _DEEPEST:
        return
    if wanted.types == {"array"} and wanted.element is not None and (kind.is_list or kind.members is not None):
        yield from (("[]", *path) for path in gaps(kind.element, wanted.element, depth + 1))
    elif not kind.is_list and "object" in kind.types:
        for name in wanted.names:
            found, below = kind.field(name), wanted.below(name)
            if isinstance(found, str):
                continue
            if name in wanted.required and "null" in found.types and below.types and "null" not in below.types:
                yield (name,)
            else:
                yield from ((name, *path) for path in gaps(found, below, depth + 1))


def _named(types: frozenset[str]) -> str:
    return " or ".join(f"{'an' if name[0] in 'aio' else 'a'} {name}" for name in sorted(types))


def _listed(values: Any) -> str:
    shown = sorted(map(str, values))
    return ", ".join(shown[:5]) + (", ..." if len(shown) > 5 else "")


def _no_field(name: str, known: Any) -> str:
    names = sorted(known)[:8]
    there = f"; there are {', '.join(names)}" if names else ""
    return f"there is no field {brief(name)}{there}"


VALUE: Final = Rule("H743", "composition-value", "MUST", "AGTP-API 12.1")
FIT: Final = Rule("H744", "composition-fit", "MUST", "AGTP-API 12.1")
RESULT: Final = Rule("H748", "composition-result", "MUST", "AGTP-API 6.2, 12.1")


def check_values(endpoint: Endpoint, recipe: Recipe, called: Mapping[Key, Endpoint]) -> Iterator[Diagnostic]:
    """Check the values of a composition's recipe against the schemas of the endpoints that it calls."""
    checker, wanted = _checked(endpoint, recipe, called)
    yield from (rule.at(endpoint, _AT, f"recipe {brief(recipe.name)}, {text}") for rule, text in checker.found)
    for text in checker.doubts:
        yield replace(FIT.at(endpoint, _AT, f"recipe {brief(recipe.name)}, {text}"), severity="warning")
    for path in gaps(checker.made, wanted):
        text = f"its result: {write_path(path)} may be null, but is required"
        yield replace(RESULT.at(endpoint, _AT, f"recipe {brief(recipe.name)}, {text}"), severity="warning")


def find_gaps(endpoint: Endpoint, recipe: Recipe, called: Mapping[Key, Endpoint]) -> list[tuple[str, ...]]:
    """Return the paths of required output fields that may get null from a step, although null is not allowed there."""
    checker, wanted = _checked(endpoint, recipe, called)
    return list(gaps(checker.made, wanted))


def _checked(endpoint: Endpoint, recipe: Recipe, called: Mapping[Key, Endpoint]) -> tuple[_Checker, Members]:
    schemas = {key: _CalledSchemas(each) for key, each in called.items()}
    checker, wanted = _Checker(recipe, schemas, _kind(endpoint.input_schema)), members_of(endpoint.output_schema)
    checker.check(wanted)
    return checker, wanted


def write_path(path: Sequence[str]) -> str:
    """Write a path like `rooms[].price`."""
    return ".".join(path).replace(".[]", "[]")


def _kind(schema: Mapping[str, Any]) -> ValueKind:
    return ValueKind(members=members_of(schema))


class _CalledSchemas:
    def __init__(self, endpoint: Endpoint) -> None:
        self.input = members_of(endpoint.input_schema)
        self.output = ValueKind() if endpoint.builtin else _kind(endpoint.output_schema)
        declared = endpoint.input_schema.get("required", ())
        self.required: Sequence[str] = [name for name in declared if isinstance(name, str)]


_Found = tuple[Rule, str]


@dataclass(slots=True)
class _Checker:
    recipe: Recipe
    called: Mapping[Key, _CalledSchemas]
    given: ValueKind
    captured: dict[str, ValueKind] = field(default_factory=dict)
    outputs: list[ValueKind] = field(default_factory=list)
    found: list[_Found] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)  # what fails only in some calls
    made: ValueKind = field(default_factory=ValueKind)  # the result

    def check(self, wanted: Members) -> None:
        group: str | None = None
        waiting: list[tuple[str, ValueKind]] = []
        for number, step in enumerate(self.recipe.steps, 1):
            if step.group is None or step.group != group:  # steps of one group do not see each other
                self.captured |= dict(waiting)
                waiting.clear()
            group = step.group
            output = self._step(step, f"step {number}")
            self.outputs.append(output)
            waiting += [] if step.output is None else [(step.output, output)]
        self.captured |= dict(waiting)
        self._result(wanted)

    def _step(self, step: RecipeStep, named: str) -> ValueKind:
        schemas = self.called[step.endpoint]
        self._conditions(step.when, None, None, named)
        item = None
        if step.for_each is not None:
            walked = self._kind(step.for_each, None, f"{named}, for_each")
            if walked is not None and walked.types and "array" not in walked.types:
                self._report(FIT, f"{named}: for_each is {' or '.join(sorted(walked.types))}, and a list is wanted")
            item = ValueKind() if walked is None else walked.element
        pages = step.pages
        self._input(step.input, schemas, item, named)
        for name in schemas.required:
            paged = pages is not None and name == pages.parameter
            source = step.input.get(name)
            if source is None and not paged:
                self._report(FIT, f"{named}: the required parameter {brief(name)} gets no value")
            elif source is not None and not step.when and self._is_omitted(source):
                text = f"{named}, {brief(name)}: it is required, but the caller may omit {brief(source.value)}"
                self.doubts.append(text)
        if pages is not None:
            self._pages(pages, schemas, named)
        output = schemas.output
        if step.compensate is not None:
            own = self.captured if step.output is None else {**self.captured, step.output: output}
            undoing = replace(self, captured=own)
            undone = f"the compensation of {named}"
            undoing._input(step.compensate.input, self.called[step.compensate.endpoint], item, undone)
            for name in self.called[step.compensate.endpoint].required:
                if name not in step.compensate.input:
                    self._report(FIT, f"{undone}: the required parameter {brief(name)} gets no value")
        if item is not None:
            return ValueKind(fields={"item": item, "output": output}, is_list=True)
        return replace(output, is_optional=True) if bool(step.when) or step.on_failure == "skip" else output

    def _pages(self, pages: Paging, schemas: _CalledSchemas, named: str) -> None:
        if not schemas.input.declares(pages.parameter) and not schemas.input.takes_any:
            self._report(FIT, f"{named}: the endpoint has no parameter {brief(pages.parameter)} for the pages")
        if not pages.cursor and not pages.counts:
            self._report(VALUE, f"{named}, pages: `cursor` or `counts` must say how the next page is asked for")
        for path in (pages.cursor or pages.items, pages.items):
            found = schemas.output.follow(path)
            if isinstance(found, str):
                self._report(VALUE, f"{named}, pages: {found}")

    def _input(
        self, sources: Mapping[str, Source], schemas: _CalledSchemas, item: ValueKind | None, named: str
    ) -> None:
        for name, source in sources.items():
            at = f"{named}, {brief(name)}"
            kind = self._kind(source, item, at)
            if not schemas.input.declares(name) and not schemas.input.takes_any:
                self._report(FIT, f"{at}: the endpoint has no such parameter")
            elif kind is not None:
                self._fit(kind, schemas.input.below(name), at, FIT)

    def _result(self, wanted: Members) -> None:
        if self.recipe.output:
            named = self.recipe.output.items()
            fields = {name: self._kind(source, None, f"output {brief(name)}") or ValueKind() for name, source in named}
            made = ValueKind(fields=fields)
        elif self.recipe.aggregation == "last":
            last = self.outputs[-1]
            made = ValueKind(fields={"results": last}) if last.is_list and wanted.types != {"array"} else last
        elif self.recipe.aggregation == "list" and wanted.types != {"array"}:
            made = ValueKind(fields={"results": ValueKind(is_list=True)})
        else:
            return  # merged outputs: which one a field comes from is not known
        self.made = made
        self._fit(made, wanted, "its result", RESULT)

    def _fit(self, kind: ValueKind, wanted: Members, at: str, rule: Rule) -> None:
        for text in misfits(kind, wanted):
            self._report(rule, f"{at}: the value {text}")

    def _kind(self, source: Source, item: ValueKind | None, at: str) -> ValueKind | None:
        """Return what is known about the value of a source; None if there is no such value, which is reported."""
        kind = self._base(source, item)
        if isinstance(kind, str):
            self._report(VALUE, f"{at}: {kind}")
            return None
        if source.default is not None:
            kind = replace(kind, is_optional=False)
        if source.where or source.sort is not None or source.limit is not None or source.pick != "all":
            kind = self._rows(source, kind, item, at)
        if source.get:
            found = kind.follow(source.get)
            if isinstance(found, str):
                self._report(VALUE, f"{at}: {found}")
                return None
            kind = found
        if source.form:
            made = members_of({"type": "string" if source.form == "text" else "integer"})
            kind = ValueKind(members=made, is_list=kind.is_list, is_optional=kind.is_optional)
        if source.reduce:
            return self._reduced(source.reduce, kind, at)
        if source.select is not None:
            own = source.kind == "constant" and source.value == {}
            inner = item if own else kind.element
            named = source.select.items()
            shape = {name: self._kind(one, inner, f"{at}, {brief(name)}") or ValueKind() for name, one in named}
            several = not own and (kind.is_list or kind.types == {"array"})
            return ValueKind(fields=shape, is_list=several, is_optional=kind.is_optional)
        return kind

    def _base(self, source: Source, item: ValueKind | None) -> ValueKind | str:
        if source.kind == "constant":
            return ValueKind(constant=source.value)
        if source.kind == "proposal":
            return self.given.follow(source.value)
        if source.kind == "item":
            return "there is no element of a list here" if item is None else item.follow(source.value)
        name, _, rest = source.value.partition(".")
        if not name:
            return ValueKind(fields=dict(self.captured))
        kind = self.captured.get(name)
        if kind is None:
            known = ", ".join(sorted(self.captured)) or "no step"
            return f"no earlier step captures {brief(name)}; captured so far: {known}"
        return kind.follow(rest)

    def _rows(self, source: Source, kind: ValueKind, item: ValueKind | None, at: str) -> ValueKind:
        element = kind.element
        self._conditions(source.where, element, item, at)
        if source.sort is not None and source.sort.kind == "constant":
            given = source.sort.value
            for name in given if isinstance(given, list) else [given]:
                found = element.follow(str(name).removeprefix("-"))
                if isinstance(found, str):
                    self._report(VALUE, f"{at}, sort: {found}")
        for inner, wanted in ((source.sort, {"string", "array"}), (source.limit, {"integer", "number"})):
            known = None if inner is None else self._kind(inner, item, at)
            if known is not None and known.types and not known.types & wanted:
                self._report(FIT, f"{at}: an order or a limit is {' or '.join(sorted(known.types))}")
        return element if source.pick != "all" else replace(element, is_list=True, is_optional=kind.is_optional)

    def _reduced(self, way: str, kind: ValueKind, at: str) -> ValueKind:
        element = kind.element
        others = element.types - {"null", "integer", "number"}
        if way in ("sum", "average") and element.types and others == element.types - {"null"}:
            self._report(FIT, f"{at}: its elements are {' or '.join(sorted(others))}, and {way} wants numbers")
        if way in ("min", "max"):
            return replace(element, is_optional=True)
        exact = way == "count" or (way == "sum" and element.types == {"integer"})
        made = ValueKind(members=members_of({"type": "integer" if exact else "number"}))
        return replace(made, is_optional=kind.is_optional or way == "average")

    def _conditions(
        self, conditions: Sequence[Condition], element: ValueKind | None, item: ValueKind | None, at: str
    ) -> None:
        for condition in conditions:
            left = self._kind(condition.left, element if element is not None else item, f"{at}, condition")
            if condition.right is None:
                continue
            right = self._kind(condition.right, item, f"{at}, condition")
            if left is not None and right is not None and condition.op not in ("contains", "in"):
                types, others = left.types - {"null"}, right.types - {"null"}
                numbers = {"number", "integer"}
                if types and others and not types & others and not (types & numbers and others & numbers):
                    message = f"{' or '.join(sorted(types))} is compared with {' or '.join(sorted(others))}"
                    self._report(FIT, f"{at}, condition: {message}, which never holds")

    def _is_omitted(self, source: Source) -> bool:
        """Return True if a value comes from an input that the caller need not send."""
        if source.kind != "proposal" or source.default is not None or source.pick != "all":
            return False
        kind = self.given.follow(source.value)
        return isinstance(kind, ValueKind) and kind.is_optional

    def _report(self, rule: Rule, text: str) -> None:
        self.found.append((rule, text))


METHOD: Final = Rule("Y830", "recipe-method", "MUST", "AGTP-API 4.5, 12.1")
PATH: Final = Rule("Y831", "recipe-path", "MUST", "AGTP-API 5.1, 12.1")
REFERENCE: Final = Rule("Y832", "recipe-reference", "MUST", "AGTP-API 12.1")
CAPTURE: Final = Rule("Y833", "recipe-capture", "SHOULD", "AGTP-API 12.1")


def check_document(subject: Subject, context: LintContext) -> Iterator[Diagnostic]:
    for index, recipe in enumerate(subject.recipes):
        yield from _check_recipe(recipe, f"/recipe/{index}", context)


def _check_recipe(recipe: Recipe, at: str, context: LintContext) -> Iterator[Diagnostic]:
    captured: set[str] = set()
    for index, step in enumerate(recipe.steps):
        where = f"{at}/steps/{index}"
        named = f"recipe {recipe.name}, step {index + 1}"
        yield from _check_method(step, where, named, context)
        fault = check_path(step.path, context.catalog.names) if step.path is not None else None
        if fault is not None:
            yield PATH.inside(f"{where}/path", f"{named}: {fault.message}", "Write the path of an endpoint.")
        yield from _check_references(step, where, named, captured)
        if step.output in captured:
            message = f"{named} captures as {brief(step.output)}, and so does an earlier step"
            yield CAPTURE.inside(f"{where}/capture_as", message, "Give each output its own name.")
        if step.output:
            captured.add(step.output)


def _check_method(step: RecipeStep, where: str, named: str, context: LintContext) -> Iterator[Diagnostic]:
    method = step.method
    if method in context.catalog.names or method in context.policies.methods.custom or not method:
        return
    near = context.catalog.suggest(method)
    advice = f"Did you mean {', '.join(near)}?" if near else "Write a verb of the catalog: bespeak catalog list."
    yield METHOD.inside(f"{where}/method", f"{named} calls {brief(method)}, which is not a valid method", advice)


def _check_references(step: RecipeStep, where: str, named: str, captured: set[str]) -> Iterator[Diagnostic]:
    for name, source in step.input.items():
        for inner in sources_in(source):
            earlier = str(inner.value).partition(".")[0]
            if inner.kind == "previous_step" and earlier not in captured:
                names = ", ".join(sorted(captured))
                known = f"Known here: {names}." if captured else "No earlier step captures its output."
                message = f"{named} takes {brief(name)} from {brief(earlier)}, which no earlier step captured"
                yield REFERENCE.inside(child(f"{where}/parameters", name), message, known)
