"""Procedures: what RUN may run, because the operator has registered it (Tier 2 8.8, 10.3); and the form of steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.contract.standard.definition import list_of
from bespeak.contract.standard.orchestrate import LISTS, MOST_BATCHED, MOST_LISTED, NESTED, STEP, nested_steps
from bespeak.protocol.exchange.refusal import Fault
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.reading.settings import SCHEMA, setting
from bespeak.text.reading.table import Table

_ID: Final = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
LONGEST_ID: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A procedure that agents with the scope activation:run may run by its id."""

    procedure_id: str = setting("", "The id by which agents run it.", key="id", required=True)
    description: str = setting("", "What it does, for people.")
    function: str = setting("", "The function that does it, as module:function.")
    steps: tuple[Mapping[str, Any], ...] = setting(
        (), "The calls that do it, as the steps of CHAIN; `input` is its input.", kind="tables", read=Table.json_tables
    )
    output: Any = setting(
        None,
        "The shape of its output, with `$from` and `$expr` for what steps returned. Without it: that of the last step.",
        kind="map",
        read=lambda table, key: table.json(key) if table.has(key) else None,
    )
    input_schema: Mapping[str, Any] | None = setting(
        None,
        "The JSON Schema of its input. Without it: that of the parameters of the function.",
        kind="map",
        key="input",
        read=lambda table, key: table.json(key) if table.has(key) else None,
        format=SCHEMA,
    )
    idempotent: bool = setting(
        False, "True if it may run again after the server died while it ran. Without it, such a run fails."
    )
    timeout: float = setting(300.0, "Seconds that it may take.", kind="seconds", bounds=(0.1, 86400), security=True)
    scopes: tuple[str, ...] = setting((), "Scopes that running it takes beside activation:run.")
    errors: tuple[str, ...] = setting((), "Names of the errors that the function refuses with.")
    target: Callable[..., Any] | None = None  # the function itself, if the contract is written in Python
    overrides: Mapping[Any, Callable[..., Any]] | None = field(default=None, compare=False, repr=False)  # for tests

    def faults(self) -> list[str]:
        found = []
        if _ID.fullmatch(self.procedure_id) is None or len(self.procedure_id) > LONGEST_ID:
            found.append(f"the id must be lower-case words joined by . _ or -; got {brief(self.procedure_id)}")
        if bool(self.steps) == bool(self.function or self.target):
            found.append("it needs either a function or steps")
        if self.function and not self.target and self.function.count(":") != 1:
            found.append(f"`function` must be module:function; got {brief(self.function)}")
        return found


def find_repeated(procedures: Sequence[Procedure]) -> str | None:
    ids = [one.procedure_id for one in procedures]
    return next((one for one in ids if ids.count(one) > 1), None)


DEEPEST: Final = 3  # lists inside each other
MOST_STEPS: Final = 1000  # steps of a workflow, those of lists inside others included
MOST_CALLS: Final = 10_000  # calls that a workflow may make: a step of `for_each` counts max_items times
MOST_ITEMS: Final = 100  # elements of `for_each`, if `max_items` does not say otherwise
_KINDS: Final = ("method", "together", "for_each", "delay", "approve")
_PLAIN: Final = frozenset({"name", "method", "path", "parameters"})
_OF_CALLS: Final = ("timeout", "retry", "undo", "compensate")  # members that only calls have


class _WrongStepError(Exception):
    """Raised at the first step that is not valid."""


def find_wrong_step(steps: Any, at: str = "steps", *, fits: bool = False) -> Fault | None:
    """Return what is wrong with the form of steps, and at which of them, such as `steps/2/together/0`.

    Set `fits` if the schema of the method that takes them has accepted them.
    """
    try:
        count, calls = _count(steps, at, 1, fits=fits)
    except _WrongStepError as error:
        fault: Fault = error.args[0]
        return fault
    if count > MOST_STEPS:
        return Fault(f"A workflow may have {MOST_STEPS} steps, those of lists inside others included; got {count}.", at)
    if calls > MOST_CALLS:
        message = f"A workflow may make {MOST_CALLS:,} calls, and these steps could make {calls:,}; lower `max_items`."
        return Fault(message, at)
    return None


@lru_cache(maxsize=4)
def _compiled(form: str) -> Validator:
    """Return what judges `steps` or `calls`, or the parameters of CHAIN or BATCH inside another list."""
    schema = NESTED.get(form) or list_of(STEP, least=1, most=MOST_BATCHED if form == "calls" else MOST_LISTED)
    validator = compile_schema(schema)
    assert isinstance(validator, Validator)
    return validator


def _check(form: str, value: Any, at: str) -> None:
    violations = _compiled(form).violations(value)
    if violations:
        raise _wrong(f"{at}{violations[0].pointer}", violations[0].message)


def _count(steps: Any, at: str, depth: int, *, fits: bool = False) -> tuple[int, int]:
    """Count the steps of a list and the calls that they make at most, with those of the lists inside them."""
    if depth > DEEPEST:
        raise _wrong(at, f"lists of steps are inside each other more than {DEEPEST} deep")
    if not fits:
        _check("calls" if at.endswith("calls") else "steps", steps, at)
    count = calls = 0
    for index, step in enumerate(steps):
        if step.keys() <= _PLAIN and step.get("method", "CHAIN") not in LISTS:  # nearly every step is such a call
            count, calls = count + 1, calls + 1
            continue
        here = f"{at}/{index}"
        _check_members(step, here)
        nested = nested_steps(step)
        inner, made = (0, 1) if nested is None else _count(nested[1], f"{here}/{nested[0]}", depth + 1)
        count += 1 + inner
        calls += made * step["for_each"].get("max_items", MOST_ITEMS) if "for_each" in step else made
    return count, calls


def _check_members(step: Mapping[str, Any], at: str) -> None:
    kinds = [kind for kind in _KINDS if kind in step]
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none of them"
        raise _wrong(at, f"a step has exactly one of {', '.join(_KINDS)}; got {found}")
    is_list = nested_steps(step) is not None
    unfit = _OF_CALLS if kinds == ["method"] else ("path", "parameters", *_OF_CALLS)
    extra = [name for name in unfit if name in step and (is_list or kinds != ["method"])]
    if extra:
        what = step["method"] if kinds == ["method"] else kinds[0]
        raise _wrong(f"{at}/{extra[0]}", f"{what!r} does not take {extra[0]!r}; write it at the calls inside")
    if is_list and kinds == ["method"]:
        _check(step["method"], step.get("parameters", {}), f"{at}/parameters")
    if "undo" in step and "compensate" in step:
        raise _wrong(at, "`undo` and `compensate` mean the same; write one")
    if "for_each" in step and ("call" in step["for_each"]) == ("steps" in step["for_each"]):
        raise _wrong(f"{at}/for_each", "it has exactly one of `call` and `steps`")
    if (is_list or "delay" in step or "approve" in step) and step.get("on_failure") in ("retry", "escalate"):
        raise _wrong(f"{at}/on_failure", f"{step['on_failure']!r} is for calls; write it at the calls inside, or skip")


def _wrong(at: str, message: str) -> _WrongStepError:
    return _WrongStepError(Fault(f"{at}: {message}.", at))
