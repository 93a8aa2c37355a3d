"""Which calls may be sent twice, and the time between."""

from __future__ import annotations

import pytest

from bespeak.agent.client.sender import Idempotency, RetryPolicy


@pytest.mark.parametrize("method", ["QUERY", "DISCOVER", "DESCRIBE", "SUMMARIZE", "PLAN"])
def test_methods_that_only_ask_may_be_repeated(method: str) -> None:
    assert Idempotency().may_repeat(method, "/anything")


@pytest.mark.requirement("API-7.1-7")
@pytest.mark.parametrize("method", ["BOOK", "EXECUTE", "PROPOSE", "NOTIFY", "DELEGATE"])
def test_methods_that_act_may_not(method: str) -> None:
    assert not Idempotency().may_repeat(method, "/")


def test_the_manifest_has_the_last_word() -> None:
    known = Idempotency([("CANCEL", "/room", True), ("QUERY", "/counter", False)])
    assert known.may_repeat("CANCEL", "/room")
    assert not known.may_repeat("CANCEL", "/other")
    assert not known.may_repeat("QUERY", "/counter")
    assert known.may_repeat("QUERY", "/other")


def test_templates_match_the_paths_of_requests() -> None:
    known = Idempotency(
        [("CANCEL", "/rooms/{id}", True), ("CANCEL", "/rooms/{id}/stay", False), ("CANCEL", "{bad", True)]
    )
    assert known.may_repeat("CANCEL", "/rooms/12")
    assert not known.may_repeat("CANCEL", "/rooms/12/stay")
    assert not known.may_repeat("CANCEL", "/halls/12")


def test_where_templates_disagree_the_cautious_one_counts() -> None:
    known = Idempotency([("CANCEL", "/{kind}/{id}", True), ("CANCEL", "/rooms/{id}", False)])
    assert not known.may_repeat("CANCEL", "/rooms/12")
    assert known.may_repeat("CANCEL", "/halls/12")


def test_delays_double_up_to_a_bound_and_are_never_negative() -> None:
    policy = RetryPolicy(first_delay=1, longest_delay=3)
    for failures, bound in ((1, 1), (2, 2), (3, 3), (60, 3)):
        assert all(0 <= policy.delay(failures) <= bound for _ in range(50))
    assert len({policy.delay(3) for _ in range(20)}) > 1
