"""From the recipe of a plan to calls that CHAIN and EXECUTE can run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from bespeak.contract.recipe import RecipeStep
from bespeak.contract.source import Condition, Source
from bespeak.protocol.fault import Fault

_OPERATORS: Final = {"eq": "==", "ne": "!=", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_ROW: Final = "row"


def write_call(step: RecipeStep, given: Mapping[str, Any]) -> dict[str, Any] | Fault:
    """Write a step of a recipe as one of CHAIN: `given` are values that are known now; others come from `input`."""
    if step.for_each is not None or step.when or step.compensate is not None:
        return Fault("a call must be made for each element of a list, or under a condition")
    parameters: dict[str, Any] = {}
    for name, source in step.input.items():
        value = write_value(source, given)
        if isinstance(value, Fault):
            return value
        parameters[name] = value
    return {"name": step.output, "method": step.method, "path": step.path or "/", "parameters": parameters}


def write_value(source: Source, given: Mapping[str, Any]) -> Any | Fault:
    """Write a source as a value, a reference, or an expression."""
    if source.kind == "constant":
        return source.value
    if source.kind == "proposal" and source.value in given and _is_plain(source):
        return given[source.value]
    if source.sort is not None or source.limit is not None or source.select is not None or source.kind == "item":
        return Fault(f"the values of {source.value!r} must be sorted, cut or shaped between calls")
    text = str(source.value) if source.kind == "previous_step" else f"input.{source.value}"
    if _WORD.fullmatch(text) is None or (source.get and _WORD.fullmatch(source.get) is None):
        return Fault(f"the field {text!r} has a name that expressions cannot say")
    if not source.where and source.pick in ("all", "first"):
        rest = f".{source.get}" if source.get else ""
        return {"$from": f"{text}[0]{rest}" if source.pick == "first" else f"{text}{rest}"}
    return _expression(source, f"steps.{text}" if source.kind == "previous_step" else text)


def _is_plain(source: Source) -> bool:
    return not source.where and source.pick == "all" and not source.get


def _expression(source: Source, text: str) -> dict[str, str] | Fault:
    rows = text
    if source.where:
        conditions = [_condition(one) for one in source.where]
        wrong = next((one for one in conditions if isinstance(one, Fault)), None)
        if wrong is not None:
            return wrong
        rows = f"{text}.filter({_ROW}, {' && '.join(map(str, conditions))})"
    rest = f".{source.get}" if source.get else ""
    if source.pick == "all":
        return {"$expr": f"{rows}.map({_ROW}, {_ROW}{rest})" if rest else rows}
    # Where only one may be meant, several are an error: there is no element -1.
    index = "0" if source.pick == "first" else f"{rows}.size() == 1 ? 0 : -1"
    return {"$expr": f"{rows}[{index}]{rest}"}


def _condition(condition: Condition) -> str | Fault:
    left, right = condition.left, condition.right
    operator = _OPERATORS.get(condition.op)
    if operator is None or right is None or left.kind != "item" or _WORD.fullmatch(str(left.value)) is None:
        return Fault(f"elements must be chosen by {condition.op!r} between calls")
    if right.kind == "constant":
        return f"{_ROW}.{left.value} {operator} {msgspec.json.encode(right.value).decode()}"
    place = {"proposal": "input", "previous_step": "steps"}.get(right.kind)
    if place is None or not _is_plain(right) or _WORD.fullmatch(str(right.value)) is None:
        return Fault("elements must be compared with other elements between calls")
    return f"{_ROW}.{left.value} {operator} {place}.{right.value}"
