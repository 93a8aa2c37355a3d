"""Y83x: a recipe calls existing methods on valid paths with values of earlier steps (AGTP-API 12.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bespeak.checks.lint.subject import LintContext, Subject
from bespeak.contract.grammar.syntax import check_path
from bespeak.contract.recipe import Recipe, RecipeStep, sources_in
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, brief
from bespeak.text.source.pointer import child

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
    near = context.catalog.near(method)
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
