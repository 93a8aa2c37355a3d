"""Evaluations 5 to 7: authority, capability, policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.runtime.negotiation.definitions import definition
from tests.runtime.negotiation.negotiating import CANCEL, FIND, LODGINGS
from tests.service import AGENT, build

from bespeak.contract.catalog.document import open_catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.negotiation import ForbiddenCombination, NegotiationSettings
from bespeak.contract.policy import Policies
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.principal import Principal, Scopes
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call
from bespeak.runtime.negotiation.evaluation import Evaluation, Rejection
from bespeak.runtime.negotiation.plan import Contract, Impossible, Miss, Plan
from bespeak.runtime.negotiation.proposal import Proposal, read_proposal
from bespeak.text.diagnostics.diagnostic import Diagnostic

SECRET = replace(FIND, path="/secrets", internal=True, required_scopes=("secrets:read",))
CERTAIN = Plan(recipe=LODGINGS, endpoints=(FIND,), quality=1.0, explanation=("Calls FIND /rooms.",))
Usable = Callable[[Endpoint], bool]


def judge(
    *found: Plan | Impossible,
    scopes: tuple[str, ...] = (),
    offered: Plan | None = None,
    findings: tuple[Diagnostic, ...] = (),
    settings: NegotiationSettings | None = None,
    **changes: Any,
) -> Contract | Rejection | Refused:
    """Evaluate a proposal for which the searches find these plans, one after the other."""
    policies = Policies(scope_required_for_invocation=False)
    call = Call(
        Request("PROPOSE", "/", "", {}, b"", Connection()), build(FIND, CANCEL, SECRET, policies=policies).server
    )
    call.principal = Principal(agent_id=AGENT, scopes=Scopes(scopes))
    catalog = open_catalog("1.1.0", None)[0]
    assert catalog is not None
    proposal = read_proposal(definition(**changes), catalog)
    assert isinstance(proposal, Proposal)
    plans = iter(found)
    evaluation = Evaluation(
        call,
        proposal,
        settings=settings or NegotiationSettings(),
        recipes=(),
        search=lambda _, __: next(plans),
        register=lambda _: list(findings),
    )
    return evaluation.judge(offered)


def reject(*found: Plan | Impossible, **changes: Any) -> Rejection:
    rejection = judge(*found, **changes)
    assert isinstance(rejection, Rejection), rejection
    return rejection


NOTHING = Impossible(misses=(Miss(field="rooms[].price", reason="No endpoint gives the price.", nearest=FIND),))


def test_plan_that_is_certain_is_approved() -> None:
    contract = judge(CERTAIN)
    assert isinstance(contract, Contract)
    assert (contract.endpoint.path, contract.explanation) == ("/rooms/cheap", ("Calls FIND /rooms.",))


@pytest.mark.requirement("API-10.3-6")
def test_missing_field_and_nearest_endpoint_are_named() -> None:
    rejection = reject(NOTHING, NOTHING)
    assert (rejection.reason, rejection.nearest) == ("composition-impossible", (FIND,))
    assert rejection.details["misses"] == [
        {"field": "rooms[].price", "reason": "No endpoint gives the price.", "nearest": "FIND /rooms"}
    ]
    assert "No endpoint gives the price." in rejection.explanation


def test_what_lacks_only_a_scope_is_not_called_missing() -> None:
    lacking = Impossible(misses=(Miss(field="input", reason="`CANCEL /stays` needs `stay_id`.", nearest=CANCEL),))
    assert "stay_id" in reject(NOTHING, lacking).explanation


def test_internal_endpoints_are_not_named_in_misses() -> None:
    miss = Miss(field="a", reason="Only FIND /secrets has it.", nearest=SECRET)
    hidden = Impossible(misses=(miss,), exhausted=True)
    rejection = reject(hidden, hidden)
    assert "secrets" not in str(rejection)
    assert "limit" in rejection.explanation


def test_plan_beyond_the_scopes_of_the_agent_is_262() -> None:
    beyond = replace(CERTAIN, endpoints=(CANCEL,))
    refused = judge(NOTHING, beyond)
    assert isinstance(refused, Refused)
    assert (refused.status, refused.details["missing_scopes"]) == (262, ["stays:cancel"])
    doubtful = reject(NOTHING, replace(beyond, quality=0.5))
    assert doubtful.reason == "composition-impossible", "nobody is asked for scopes on a guess"


def test_doubtful_plan_is_offered_and_approved_once_the_agent_accepts_it() -> None:
    doubtful = replace(CERTAIN, quality=0.5, doubts=("Say which rooms.",))
    rejection = reject(doubtful)
    assert rejection.reason == "ambiguous"
    assert rejection.explanation.startswith("Say which rooms.")
    assert rejection.counter is not None
    assert rejection.counter.endpoint.description == "Calls FIND /rooms."
    assert isinstance(judge(doubtful, offered=doubtful), Contract)


def test_offer_is_not_agreed_to_if_something_else_would_be_done_now() -> None:
    doubtful = replace(CERTAIN, quality=0.5)
    step = replace(CERTAIN.recipe.steps[0], output="other")
    offered = replace(doubtful, recipe=replace(CERTAIN.recipe, steps=(step,)))
    assert reject(doubtful, offered=offered).reason == "ambiguous"
    assert reject(NOTHING, NOTHING, offered=doubtful).reason == "composition-impossible"


def test_doubt_is_the_reason_before_all_others() -> None:
    wanted = {"type": "object", "properties": {"rooms": {"type": "array", "minItems": 1}}, "required": ["rooms"]}
    doubtful = replace(CERTAIN, quality=0.5, endpoints=(CANCEL,))
    rejection = reject(doubtful, scopes=("stays:cancel",), output_schema=wanted)
    assert rejection.reason == "ambiguous"
    assert "would be irreversible" in rejection.explanation
    assert "minItems" in rejection.explanation
    assert rejection.counter is not None
    assert rejection.counter.endpoint.semantic.impact == "irreversible"
    assert "minItems" not in str(rejection.counter.endpoint.output_schema)


@pytest.mark.requirement("API-16.2-2", "API-10.3-7")
def test_forbidden_combination_is_refused_although_each_step_is_allowed() -> None:
    combination = ForbiddenCombination(together=("FIND /rooms", "scope:stays:*"), reason="Guests stay private.")
    settings = NegotiationSettings(forbidden=(combination,))
    both = replace(CERTAIN, endpoints=(FIND, CANCEL))
    changes: dict[str, Any] = {"scopes": ("stays:cancel",), "settings": settings}
    rejection = reject(both, **changes)
    assert (rejection.reason, rejection.explanation) == ("policy-refused", "Guests stay private.")
    assert reject(replace(both, quality=0.5), **changes).counter is None
    assert isinstance(judge(CERTAIN, **changes), Contract)


def test_informational_proposal_has_no_irreversible_step() -> None:
    rejection = reject(replace(CERTAIN, endpoints=(CANCEL,)), scopes=("stays:cancel",))
    assert (rejection.reason, "irreversible" in rejection.explanation) == ("policy-refused", True)
    assert rejection.counter is not None
    assert rejection.counter.endpoint.semantic.impact == "irreversible"


def test_plan_that_does_not_fit_the_contract_is_refused() -> None:
    finding = Diagnostic("X1", "error", "step 1 of FIND /secrets lacks city", pointer="/recipe")
    rejection = reject(CERTAIN, findings=(finding,))
    assert (rejection.reason, rejection.details["misses"][0]["field"]) == ("composition-impossible", "/recipe")
    internal = replace(CERTAIN, endpoints=(FIND, SECRET))
    hidden = reject(internal, findings=(finding,), scopes=("secrets:read",))
    assert "secrets" not in str(hidden)
    assert reject(replace(CERTAIN, quality=0.5), findings=(finding,)).counter is None


def test_existing_endpoint_is_not_planned() -> None:
    rejection = reject(path="/rooms")
    assert (rejection.reason, [str(one) for one in rejection.nearest]) == ("policy-refused", ["FIND /rooms"])
    assert isinstance(judge(CERTAIN, path="/secrets"), Contract), "an internal one is not revealed"


def test_contract_of_an_internal_endpoint_is_not_told_even_to_those_who_may_call_it() -> None:
    rejection = reject(path="/secrets", scopes=("secrets:read",))
    assert (rejection.reason, rejection.counter, rejection.nearest) == ("policy-refused", None, ())


@pytest.mark.parametrize("path", ["/rooms//cheap", "/rooms/../cheap", "/rooms/./cheap"])
def test_path_that_clients_read_as_another_is_not_admitted(path: str) -> None:
    assert reject(CERTAIN, path=path).reason == "policy-refused"


def test_output_that_no_step_promises_is_offered_without_the_promise() -> None:
    rooms = {"type": "object", "properties": {"rooms": {"type": "array"}}, "required": ["rooms"]}
    wanted = {**rooms, "properties": {"rooms": {"type": "array", "minItems": 1}}}
    rejection = reject(CERTAIN, output_schema=wanted)
    assert (rejection.reason, rejection.explanation) == (
        "composition-impossible",
        "No endpoint of this server promises `minItems` of `rooms`.",
    )
    assert rejection.counter is not None
    assert rejection.counter.endpoint.output_schema == rooms
    assert isinstance(judge(CERTAIN, offered=CERTAIN, output_schema=rooms), Contract)
