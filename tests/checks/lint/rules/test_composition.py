"""What a composition promises is not better than its steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.compositions import compose, recipe, step
from tests.service import echo, make_endpoint

from bespeak.checks.lint.rules.composition import check
from bespeak.contract.policy import MethodPolicy, Policies
from bespeak.contract.recipe import Compensation

WRITE = make_endpoint("BOOK", "/a", echo, impact="irreversible", scopes=("rooms:book",))
UNSAFE = replace(WRITE, semantic=replace(WRITE.semantic, is_idempotent=False))


def rules(called: Any, **fields: Any) -> list[str]:
    endpoint = compose("BOOK", "/c", "r", **fields)
    return [finding.rule for finding in check(endpoint, recipe(step("BOOK /a")), {called.key: called}, Policies(), 1)]


def test_a_composition_that_says_what_its_steps_say_is_valid() -> None:
    assert rules(WRITE, impact="irreversible", scopes=("rooms:book", "rooms:more")) == []


@pytest.mark.requirement("API-12.1-7")
def test_scopes_of_steps_must_be_required() -> None:
    assert rules(WRITE, impact="irreversible", scopes=("rooms:read",)) == ["H745"]


def test_a_lower_impact_or_a_better_idempotency_is_refused() -> None:
    assert rules(WRITE, impact="reversible", scopes=("rooms:book",)) == ["H746"]
    assert rules(UNSAFE, impact="irreversible", scopes=("rooms:book",)) == ["H746"]


@pytest.mark.parametrize(
    ("called", "message"),
    [
        (replace(WRITE, builtin=True), "not for compositions"),
        (replace(WRITE, missing="a store"), "lacks a store"),
    ],
)
def test_built_in_methods_that_change_something_or_do_not_work_cannot_be_steps(called: Any, message: str) -> None:
    endpoint = compose("BOOK", "/c", "r", impact="irreversible", scopes=("rooms:book",))
    [finding] = check(endpoint, recipe(step("BOOK /a")), {called.key: called}, Policies(), 1)
    assert (finding.rule, message in finding.message) == ("H740", True)


def test_a_method_that_the_policies_forbid_cannot_be_a_step() -> None:
    policies = Policies(methods=MethodPolicy(disallow=("BOOK",)))
    endpoint = compose("RESERVE", "/c", "r", impact="irreversible", scopes=("rooms:book",))
    [finding] = check(endpoint, recipe(step("BOOK /a")), {WRITE.key: WRITE}, policies, 1)
    assert finding.rule == "H740"


def test_a_step_is_not_undone_by_a_call_that_waits_for_a_confirmation() -> None:
    cancel = make_endpoint("CANCEL", "/a", echo, impact="irreversible")
    made = recipe(step("BOOK /a", compensate=Compensation(method="CANCEL", path="/a")))
    endpoint = compose("RESERVE", "/c", "r", impact="irreversible", scopes=("rooms:book",))
    called = {WRITE.key: WRITE, cancel.key: cancel}
    assert list(check(endpoint, made, called, Policies(), 1)) == []
    [finding] = check(endpoint, made, called, Policies(confirm_irreversible=True), 1)
    assert finding.rule == "H747"
