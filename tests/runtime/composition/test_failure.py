"""The answer of a composition that did not reach its end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.compositions import compose, recipe, step
from tests.service import echo, make_endpoint

from bespeak.protocol.exchange.messages import Response
from bespeak.runtime.composition.plan import plan_composition
from bespeak.runtime.composition.run import (
    MOST_OUTPUT,
    Failure,
    failed_answer,
    late,
    read_verdict,
    refuse,
    write_verdict,
)

CALLED = make_endpoint("FETCH", "/a", echo)
STEP = plan_composition(compose("FIND", "/c", "r"), recipe(step("FETCH /a")), {CALLED.key: CALLED}).steps[0]


def refused(response: Response, number: str = "1", **outputs: Any) -> Any:
    return refuse(("FIND", "/c"), "r", failed_answer(STEP, number, response), outputs)


def test_a_step_that_waits_for_a_confirmation_makes_the_whole_wait() -> None:
    body = b'{"error":{"code":"confirmation-required","message":"Confirm it.","confirmation_id":"conf-1"}}'
    made = refused(Response(262, body))
    assert (made.status, made.code) == (262, "confirmation-required")
    assert made.details == {"confirmation_id": "conf-1", "recipe": "r", "step": 1}
    assert made.message == "Confirm it. It is step 1 of this call, FETCH /a."


def test_a_failure_that_may_pass_is_told_with_the_time_to_wait() -> None:
    failure = failed_answer(STEP, "1", Response(503, b"", headers=(("Retry-After", "7"),)))
    assert failure.is_transient
    assert refuse(("FIND", "/c"), "r", failure, {}, again=True).headers == (("Retry-After", "7"),)
    assert refuse(("FIND", "/c"), "r", failure, {}).headers == ()
    assert not failed_answer(STEP, "1", Response(503)).is_transient


def test_a_verdict_that_was_noted_is_read_again() -> None:
    failure = failed_answer(STEP, "1/2", Response(500, b'{"error":{"code":"x"}}'))
    assert read_verdict(write_verdict(failure), [STEP]) == failure
    assert read_verdict(write_verdict(failure), []) is None


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_step_that_took_too_long_is_repeated_only_if_that_does_no_harm(idempotent: bool) -> None:
    failure = late(replace(STEP, is_idempotent=idempotent), 0.5)
    assert (failure.error["code"], failure.is_transient) == ("composition-timeout", idempotent)


def test_outputs_that_are_too_large_are_left_out() -> None:
    made = refused(Response(500), big="x" * MOST_OUTPUT)
    assert (made.details["details"]["outputs"], made.details["details"]["outputs_omitted"]) == ({}, True)


def test_the_element_that_failed_is_numbered() -> None:
    assert refused(Response(500), "1/17:2").details["details"]["element"] == 17


def test_a_body_that_is_not_an_error_object_is_tolerated() -> None:
    assert failed_answer(STEP, "1", Response(500, b"[]")) == Failure(STEP, "1", 500, {}, None)
