"""H74x: a composition calls endpoints that exist, and promises no more than they do (AGTP-API 12.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from bespeak.contract.confirmation import needs_confirmation
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
from bespeak.contract.recipe import Recipe
from bespeak.contract.semantic import IMPACTS
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.rule import Rule

_AT: Final = "/handler/recipe"

STEP: Final = Rule(
    ("H740", "composition-step", "MUST", "AGTP-API 12.1, 13.2"),
    "Each step of a composition calls an endpoint that this server serves.",
    why="A composition with a step that cannot be called would fail on every call. Correct the method or the path of "
    "the step, or declare the endpoint.",
)
CYCLE: Final = Rule(
    ("H741", "composition-cycle", "MUST", "AGTP-API 12.1"),
    "A composition does not call itself, and no composition that it calls does.",
    why="The call would never end. Remove one of the steps from its recipe.",
)
SIZE: Final = Rule(
    ("H742", "composition-size", "MUST", "AGTP-API 8.7, 12.1"),
    "A composition has at most policies.max_synthesis_depth steps, those of the compositions it calls included.",
    why="One request would cause more calls than the operator allows. Use fewer steps, or raise max_synthesis_depth.",
)
SCOPES: Final = Rule(
    ("H745", "composition-scopes", "MUST", "AGTP-API 10.4, 12.1"),
    "The required_scopes of a composition include those of all its steps.",
    why=(
        "A caller without one of the scopes would be refused in the middle, after earlier steps were carried out. Add "
        "the missing scopes to required_scopes."
    ),
)
PROMISE: Final = Rule(
    ("H746", "composition-impact", "MUST", "AGTP-API 7.1, 12.1, 16.1"),
    "The impact and the idempotency of a composition are not better than those of its steps.",
    why="Agents decide by these fields what they may call alone. Declare the worst impact of the steps.",
)
UNDO: Final = Rule(
    ("H747", "composition-undo", "MUST", "AGTP-API 12.1"),
    "A step is undone by a call that needs no confirmation.",
    why="A composition that has failed cannot wait: what it has done would stay. Name another compensating endpoint.",
)
FUNCTION: Final = Rule(
    ("H749", "recipe-function", "MUST", "AGTP-API 12.1"),
    "A function that describes a recipe calls steps and passes values on, and does nothing else with them.",
    why=(
        "It runs once, when it is declared, and its values are not known then. Decisions and loops are options of a "
        "step; computations belong into an endpoint."
    ),
    bad='found = app.step("FIND", "/rooms", {"city": city})\nif found.rooms:\n    app.step("BOOK", "/room")\n',
    good=(
        'found = app.step("FIND", "/rooms", {"city": city})\napp.step("BOOK", "/room", when=found.rooms.present())\n'
    ),
    notation="python",
)

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
