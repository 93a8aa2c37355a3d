"""Steps may use what earlier steps returned and nothing else, in references and in expressions."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bespeak.extensions.workflows.spec import StepSpec
from bespeak.extensions.workflows.start import check_names
from bespeak.protocol.exchange.refusal import Fault


def check(*steps: dict[str, Any], **fields: Any) -> Fault | None:
    return check_names(tuple(msgspec.convert({"method": "FIND", **step}, StepSpec) for step in steps), **fields)


def refers(to: str) -> dict[str, Any]:
    return {"parameters": {"x": {"$from": to}}}


def test_earlier_steps_may_be_used_by_name_and_number() -> None:
    assert (
        check({"name": "a"}, {**refers("a.x"), "compensate": {"method": "FIND", **refers("2")}}, propagates=True)
        is None
    )
    assert check({"name": "a"}, refers("1"), propagates=True) is None
    assert check(refers("input.x"), propagates=False, has_input=True) is None


@pytest.mark.parametrize(
    "steps",
    [
        [refers("later"), {"name": "later"}],
        [{"name": "me", **refers("me")}],
        [{"name": "a"}, {"name": "a"}],
        [{"name": "7"}],
        [refers("input")],
        [{"parameters": {"x": {"$expr": 3}}}],
        [{"parameters": {"x": {"$expr": "1", "y": 2}}}],
    ],
)
def test_cycles_later_steps_and_names_used_twice_are_faults(steps: list[dict[str, Any]]) -> None:
    fault = check(*steps, propagates=True)
    assert fault is not None
    assert fault.at == str(
        len(steps) if "name" in steps[-1] and len(steps) == 2 and "parameters" not in steps[0] else 1
    )


def test_without_propagation_no_step_is_known() -> None:
    fault = check({"name": "a"}, refers("a"), propagates=False)
    assert fault is not None
    assert "context_propagation" in fault.message
