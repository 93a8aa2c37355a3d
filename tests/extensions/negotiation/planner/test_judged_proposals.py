"""Proposals judged by hand: no wrong approval, and nearly every possible one planned."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.extensions.negotiation.planner.contracts import contract, contracts

from bespeak.contract.endpoint import Endpoint
from bespeak.extensions.negotiation.plan import Plan
from bespeak.extensions.negotiation.planner.planner import Planner

Case = tuple[str, str, str, list[Endpoint]]


def read() -> list[Case]:
    """Read the file: verdict, paths of the right plan, proposal, service."""
    found: list[Case] = []
    text = Path(__file__).with_name("judged_proposals.txt").read_text("utf-8")
    for block in text.split("\n= ")[1:]:
        lines = [line for line in block.splitlines()[1:] if line]
        service = contracts("\n".join(line for line in lines if not line.startswith(("yes ", "maybe ", "no "))))
        for line in lines:
            if line.startswith(("yes ", "maybe ", "no ")):
                judged, proposal = line.split(" | ")
                verdict, _, paths = judged.partition(" ")
                found.append((verdict, paths, proposal, service))
    return found


CASES = read()


def select(verdict: str) -> list[Case]:
    return [case for case in CASES if case[0] == verdict]


@pytest.mark.parametrize("case", select("yes"), ids=lambda case: case[2])
def test_what_is_possible_is_approved_with_the_right_plan(case: Case) -> None:
    _, paths, proposal, service = case
    found = Planner(service).plan(contract(proposal))
    assert isinstance(found, Plan), found
    assert found.is_certain, found.doubts
    assert ",".join(endpoint.path for endpoint in found.endpoints) == paths


@pytest.mark.parametrize("case", select("maybe"), ids=lambda case: case[2])
def test_what_is_doubtful_is_never_approved(case: Case) -> None:
    found = Planner(case[3]).plan(contract(case[2]))
    assert not (isinstance(found, Plan) and found.is_certain)
    assert not isinstance(found, Plan) or found.doubts


@pytest.mark.parametrize("case", select("no"), ids=lambda case: case[2])
def test_what_is_impossible_is_not_even_suggested_with_certainty(case: Case) -> None:
    found = Planner(case[3]).plan(contract(case[2]))
    assert not (isinstance(found, Plan) and found.is_certain), found
