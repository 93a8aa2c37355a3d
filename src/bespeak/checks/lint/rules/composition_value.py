"""H743, H744 and H748: the values of a recipe exist, and fit where they go (AGTP-API 12.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from bespeak.checks.lint.value_kind import Kind, gaps, misfits
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.recipe import Paging, Recipe, RecipeStep
from bespeak.contract.schema.members import Members, members_of
from bespeak.contract.source import Condition, Source
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.rule import Rule

VALUE: Final = Rule(
    ("H743", "composition-value", "MUST", "AGTP-API 12.1"),
    "A recipe takes values only from fields that exist: of the input, of earlier steps, of elements of lists.",
    why="The value would always be missing. Usually the name is misspelled, or the step comes later.",
)
FIT: Final = Rule(
    ("H744", "composition-fit", "MUST", "AGTP-API 12.1"),
    "A value fits the field it goes to: type, format and listed values agree, and every required field has one.",
    why="The step would refuse every call. Take the value from another field, or change one of the two schemas.",
)
RESULT: Final = Rule(
    ("H748", "composition-result", "MUST", "AGTP-API 6.2, 12.1"),
    "The result of a recipe fits the output schema of its endpoint.",
    why="Every answer would break the contract and would not be sent. Add the missing fields to `output`.",
)

_AT: Final = "/handler/recipe"
Key = tuple[str, str]


def check(endpoint: Endpoint, recipe: Recipe, called: Mapping[Key, Endpoint]) -> Iterator[Diagnostic]:
    """Check the values of a composition's recipe against the schemas of the endpoints that it calls."""
    checker = _Checker(recipe, {key: _Schemas(each) for key, each in called.items()}, _kind(endpoint.input_schema))
    wanted = members_of(endpoint.output_schema)
    for rule, text in checker.check(wanted):
        yield rule.at(endpoint, _AT, f"recipe {brief(recipe.name)}, {text}")
    for text in checker.doubts:
        yield replace(FIT.at(endpoint, _AT, f"recipe {brief(recipe.name)}, {text}"), severity="warning")
    for path in gaps(checker.made, wanted):
        text = f"its result: {write_path(path)} may be null, but is required"
        yield replace(RESULT.at(endpoint, _AT, f"recipe {brief(recipe.name)}, {text}"), severity="warning")


def find_gaps(endpoint: Endpoint, recipe: Recipe, called: Mapping[Key, Endpoint]) -> list[tuple[str, ...]]:
    """Return the paths of required output fields that may get null from a step, although null is not allowed there."""
    checker = _Checker(recipe, {key: _Schemas(each) for key, each in called.items()}, _kind(endpoint.input_schema))
    wanted = members_of(endpoint.output_schema)
    checker.check(wanted)
    return list(gaps(checker.made, wanted))


def write_path(path: Sequence[str]) -> str:
    """Write a path like `rooms[].price`."""
    return ".".join(path).replace(".[]", "[]")


def _kind(schema: Mapping[str, Any]) -> Kind:
    return Kind(members=members_of(schema))


class _Schemas:
    """Schemas of one endpoint."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.input = members_of(endpoint.input_schema)
        output = Kind() if endpoint.builtin else _kind(endpoint.output_schema)
        self.output = output
        declared = endpoint.input_schema.get("required", ())
        self.required: Sequence[str] = [name for name in declared if isinstance(name, str)]


_Found = tuple[Rule, str]


@dataclass(slots=True)
class _Checker:
    recipe: Recipe
    called: Mapping[Key, _Schemas]
    given: Kind
    captured: dict[str, Kind] = field(default_factory=dict)
    outputs: list[Kind] = field(default_factory=list)
    found: list[_Found] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    """What fails only in some calls."""
    made: Kind = field(default_factory=Kind)
    """The result."""

    def check(self, wanted: Members) -> list[_Found]:
        group: str | None = None
        waiting: list[tuple[str, Kind]] = []
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
        return self.found

    def _step(self, step: RecipeStep, named: str) -> Kind:
        schemas = self.called[step.endpoint]
        self._conditions(step.when, None, None, named)
        item = None
        if step.for_each is not None:
            walked = self._kind(step.for_each, None, f"{named}, for_each")
            if walked is not None and walked.types and "array" not in walked.types:
                self._report(FIT, f"{named}: for_each is {' or '.join(sorted(walked.types))}, and a list is wanted")
            item = Kind() if walked is None else walked.element
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
            return Kind(fields={"item": item, "output": output}, is_list=True)
        skipped = bool(step.when) or step.on_failure == "skip"
        return replace(output, is_optional=True) if skipped else output

    def _pages(self, pages: Paging, schemas: _Schemas, named: str) -> None:
        if not schemas.input.declares(pages.parameter) and not schemas.input.takes_any:
            self._report(FIT, f"{named}: the endpoint has no parameter {brief(pages.parameter)} for the pages")
        if not pages.cursor and not pages.counts:
            self._report(VALUE, f"{named}, pages: `cursor` or `counts` must say how the next page is asked for")
        for path in (pages.cursor or pages.items, pages.items):
            found = schemas.output.follow(path)
            if isinstance(found, str):
                self._report(VALUE, f"{named}, pages: {found}")

    def _input(self, sources: Mapping[str, Source], schemas: _Schemas, item: Kind | None, named: str) -> None:
        for name, source in sources.items():
            at = f"{named}, {brief(name)}"
            kind = self._kind(source, item, at)
            if not schemas.input.declares(name) and not schemas.input.takes_any:
                self._report(FIT, f"{at}: the endpoint has no such parameter")
            elif kind is not None:
                self._fit(kind, schemas.input.below(name), at, FIT)

    def _result(self, wanted: Members) -> None:
        if self.recipe.output:
            kinds = {
                name: self._kind(source, None, f"output {brief(name)}") for name, source in self.recipe.output.items()
            }
            made = Kind(fields={name: kind or Kind() for name, kind in kinds.items()})
        elif self.recipe.aggregation == "last":
            last = self.outputs[-1]
            made = Kind(fields={"results": last}) if last.is_list and wanted.types != {"array"} else last
        elif self.recipe.aggregation == "list" and wanted.types != {"array"}:
            made = Kind(fields={"results": Kind(is_list=True)})
        else:
            return  # merged outputs: which one a field comes from is not known
        self.made = made
        self._fit(made, wanted, "its result", RESULT)

    def _fit(self, kind: Kind, wanted: Members, at: str, rule: Rule) -> None:
        for text in misfits(kind, wanted):
            self._report(rule, f"{at}: the value {text}")

    def _kind(self, source: Source, item: Kind | None, at: str) -> Kind | None:
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
        if source.select is not None:
            own = source.kind == "constant" and source.value == {}
            inner = item if own else kind.element
            shape = {
                name: self._kind(one, inner, f"{at}, {brief(name)}") or Kind() for name, one in source.select.items()
            }
            several = not own and (kind.is_list or kind.types == {"array"})
            return Kind(fields=shape, is_list=several, is_optional=kind.is_optional)
        return kind

    def _shape(self, sources: Mapping[str, Source], item: Kind | None, at: str) -> dict[str, Kind]:
        return {name: self._kind(one, item, f"{at}, {brief(name)}") or Kind() for name, one in sources.items()}

    def _base(self, source: Source, item: Kind | None) -> Kind | str:
        if source.kind == "constant":
            return Kind(constant=source.value)
        if source.kind == "proposal":
            return self.given.follow(source.value)
        if source.kind == "item":
            return "there is no element of a list here" if item is None else item.follow(source.value)
        name, _, rest = source.value.partition(".")
        if not name:
            return Kind(fields=dict(self.captured))
        kind = self.captured.get(name)
        if kind is None:
            known = ", ".join(sorted(self.captured)) or "no step"
            return f"no earlier step captures {brief(name)}; captured so far: {known}"
        return kind.follow(rest)

    def _rows(self, source: Source, kind: Kind, item: Kind | None, at: str) -> Kind:
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

    def _conditions(self, conditions: Sequence[Condition], element: Kind | None, item: Kind | None, at: str) -> None:
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
        return isinstance(kind, Kind) and kind.is_optional

    def _report(self, rule: Rule, text: str) -> None:
        self.found.append((rule, text))
