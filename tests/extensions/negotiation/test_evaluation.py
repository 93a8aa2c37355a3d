"""Evaluations 5 to 7: authority, capability, policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.cases import rows
from tests.extensions.negotiation.definitions import definition
from tests.extensions.negotiation.negotiating import CANCEL, FIND, LODGINGS
from tests.service import AGENT, build, echo, make_endpoint

from bespeak.contract.catalog.document import open_catalog
from bespeak.contract.data_set import DataColumn, DataSet
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import Composition
from bespeak.contract.policy import MethodPolicy, Policies
from bespeak.contract.recipe import Recipe
from bespeak.contract.service import DataManifest
from bespeak.extensions.negotiation.evaluation import (
    Evaluation,
    Rejection,
    find_forbidden,
    list_parts,
    match_recipe,
    may_use,
    refuse_missing_scopes,
    refuse_unauthorized_data,
)
from bespeak.extensions.negotiation.plan import Impossible, Miss, Plan, PlannedContract
from bespeak.extensions.negotiation.proposal import Proposal, read_proposal
from bespeak.extensions.negotiation.settings import ForbiddenCombination, NegotiationSettings
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.principal import ANONYMOUS, Principal, Scopes
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call
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
) -> PlannedContract | Rejection | Refused:
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
        call=call,
        proposal=proposal,
        settings=settings or NegotiationSettings(),
        recipes={},
        search=lambda _, __: next(plans),
        register=lambda _: list(findings),
    )
    return evaluation.judge(offered)


def reject(*found: Plan | Impossible, **changes: Any) -> Rejection:
    rejection = judge(*found, **changes)
    assert isinstance(rejection, Rejection), rejection
    return rejection


NOTHING = Impossible(misses=(Miss(field="rooms[].price", reason="No endpoint gives the price.", nearest=FIND),))


def test_certain_plan_is_approved_and_existing_endpoint_not_planned() -> None:
    contract = judge(CERTAIN)
    assert isinstance(contract, PlannedContract)
    assert (contract.endpoint.path, contract.explanation) == ("/rooms/cheap", ("Calls FIND /rooms.",))
    rejection = reject(path="/rooms")
    assert (rejection.reason, [str(one) for one in rejection.nearest]) == ("policy-refused", ["FIND /rooms"])
    assert isinstance(judge(CERTAIN, path="/secrets"), PlannedContract), "an internal one is not revealed"


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
    assert rejection.counter.endpoint.description == "Calls FIND /rooms."
    assert isinstance(judge(doubtful, offered=doubtful), PlannedContract)


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
    assert isinstance(judge(CERTAIN, **changes), PlannedContract)


def test_informational_proposal_has_no_irreversible_step() -> None:
    rejection = reject(replace(CERTAIN, endpoints=(CANCEL,)), scopes=("stays:cancel",))
    assert (rejection.reason, "irreversible" in rejection.explanation) == ("policy-refused", True)
    assert rejection.counter.endpoint.semantic.impact == "irreversible"


def test_plan_that_does_not_fit_the_contract_is_refused() -> None:
    finding = Diagnostic("X1", "error", "step 1 of FIND /secrets lacks city", pointer="/recipe")
    rejection = reject(CERTAIN, findings=(finding,))
    assert (rejection.reason, rejection.details["misses"][0]["field"]) == ("composition-impossible", "/recipe")
    internal = replace(CERTAIN, endpoints=(FIND, SECRET))
    assert "secrets" not in str(reject(internal, findings=(finding,), scopes=("secrets:read",)))
    assert reject(replace(CERTAIN, quality=0.5), findings=(finding,)).counter is None


def test_public_endpoints_are_used_without_scopes_and_internal_contracts_not_told() -> None:
    rejection = reject(path="/secrets", scopes=("secrets:read",))
    assert (rejection.reason, rejection.counter, rejection.nearest) == ("policy-refused", None, ())
    assert usable(FIND)
    assert usable(CANCEL)


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
    assert rejection.counter.endpoint.output_schema == rooms
    assert isinstance(judge(CERTAIN, offered=CERTAIN, output_schema=rooms), PlannedContract)


AUTHORITY_SECRET = replace(make_endpoint("FETCH", "/secrets", echo, scopes=("secrets:read",)), internal=True)
KNOWN = Principal(agent_id=AGENT)
TRUSTED = Principal(agent_id=AGENT, scopes=Scopes(["secrets:read", "stays:cancel"]))


def call(principal: Principal = KNOWN, **policies: Any) -> Call:
    given = Policies(**{"scope_required_for_invocation": False, **policies})
    bench = build(FIND, CANCEL, AUTHORITY_SECRET, policies=given)
    made = Call(Request("PROPOSE", "/", "", {}, b"", Connection()), bench.server)
    made.principal = principal
    return made


def usable(endpoint: Endpoint, principal: Principal = KNOWN, *internal: str, **policies: Any) -> bool:
    return may_use(call(principal, **policies), NegotiationSettings(internal=internal), endpoint)


@pytest.mark.requirement("API-16.2-2")
def test_internal_endpoints_are_used_only_where_the_operator_allows_it_and_with_their_scopes() -> None:
    assert not usable(AUTHORITY_SECRET, TRUSTED)
    assert usable(AUTHORITY_SECRET, TRUSTED, "FETCH /secrets")
    assert usable(AUTHORITY_SECRET, TRUSTED, "FETCH /sec*")
    assert not usable(AUTHORITY_SECRET, TRUSTED, "FETCH /other")
    assert not usable(AUTHORITY_SECRET, KNOWN, "FETCH /secrets")


def test_internal_undiscoverable_and_unknown_endpoints_are_not_used() -> None:
    assert not usable(CANCEL, ANONYMOUS, anonymous_discovery=False)
    assert usable(CANCEL, TRUSTED, anonymous_discovery=False)
    assert not usable(call().routes.endpoints["DISCOVER", "/"])
    assert not usable(CANCEL, methods=MethodPolicy(disallow=("CANCEL",)))
    assert not usable(make_endpoint("FIND", "/elsewhere", echo))


def test_endpoints_of_syntheses_are_not_used_again() -> None:
    made = call()
    routes = made.routes
    route = replace(routes.steps["FIND", "/rooms"], synthesis_id="syn-1")
    made.routes = replace(routes, steps={**routes.steps, ("FIND", "/rooms"): route})
    assert not may_use(made, NegotiationSettings(), FIND)


def test_missing_scopes_are_named() -> None:
    refused = refuse_missing_scopes(call(), ["stays:cancel", "a:b"])
    assert (refused.status, refused.details["type"]) == (262, "scope-required")
    assert refused.details["missing_scopes"] == ["a:b", "stays:cancel"]
    assert refuse_missing_scopes(call(TRUSTED), ["stays:cancel"]) is None
    assert refuse_missing_scopes(call(ANONYMOUS), []) is None


@pytest.mark.requirement("API-16.2-2")
@rows(
    "together, forbidden",
    (("FIND /rooms", "CANCEL /stays"), True),
    (("FIND /rooms", "CANCEL /guests"), False),
    (("FIND *", "scope:stays:*"), True),
    (("data:guests", "CANCEL *"), True),
    (("data:payments", "CANCEL *"), False),
    (("namespace:desk",), True),
)
def test_forbidden_combinations_must_not_meet(together: tuple[str, ...], forbidden: bool) -> None:
    settings = NegotiationSettings(forbidden=(ForbiddenCombination(together=together, reason="no"),))
    parts = [replace(FIND, data_class="guests", namespace="desk"), CANCEL]
    assert (find_forbidden(settings, parts) is not None) is forbidden


def test_parts_of_a_composition_count() -> None:
    outer = replace(FIND, path="/lodgings", handler=Composition(recipe="lodgings"))
    found = list_parts([outer], {"lodgings": LODGINGS}, {FIND.key: FIND}.get)
    assert {endpoint.path for endpoint in found} == {"/lodgings", "/rooms"}


def test_data_class_that_a_path_names_needs_its_scopes_first() -> None:
    def judge(path: str, principal: Principal = KNOWN) -> Any:
        made = Call(Request("PROPOSE", "/", "", {}, b"", Connection()), bench.server)
        made.principal = principal
        return refuse_unauthorized_data(made, make_endpoint("FIND", path, echo))

    columns = (DataColumn("id", {"type": "integer"}),)
    history = DataSet(name="order-history", sensitivity="high", target=list, columns=columns)
    rates = DataSet(name="exchange-rates", sensitivity="low", target=list, columns=columns)
    bench = build(data_manifest=DataManifest(available_data=(history, rates)))
    assert judge("/customers/{id}/orders").details["missing_scopes"] == ["data:order-history"]
    assert judge("/customers/{id}/orders", Principal(agent_id=AGENT, scopes=Scopes(["data:order-history"]))) is None
    assert judge("/customers/{id}/invoices") is None
    assert judge("/exchange-rates") is None


PROPOSED = replace(FIND, path="/lodgings")


def match(*recipes: Recipe) -> Plan | None:
    catalog = open_catalog("1.1.0", None)[0]
    assert catalog is not None
    return match_recipe(PROPOSED, recipes, catalog, {FIND.key: FIND}.get)


@rows(
    "pattern, fits",
    ({"name_exact": "FIND"}, True),
    ({"name_exact": "LIST"}, False),
    ({"name_regex": "FI.D"}, True),
    ({"name_regex": "F"}, False),
    ({"category": "discovery"}, True),
    ({"category": "transaction"}, False),
    ({"path_exact": "/lodgings"}, True),
    ({"path_regex": "/lod.*"}, True),
    ({"path_regex": "/rooms"}, False),
    ({"has_parameters": ["city"]}, True),
    ({"has_parameters": ["city", "price"]}, False),
    ({"name_exact": "FIND", "path_exact": "/rooms"}, False),
    ({}, False),
)
def test_all_conditions_of_a_pattern_must_hold(pattern: dict[str, Any], fits: bool) -> None:
    assert (match(replace(LODGINGS, pattern=pattern)) is not None) is fits


def test_first_recipe_whose_endpoints_exist_is_the_plan() -> None:
    step = replace(LODGINGS.steps[0], path="/nowhere")
    broken = replace(LODGINGS, name="broken", steps=(step,))
    plan = match(broken, LODGINGS)
    assert (plan.recipe, plan.endpoints, plan.is_certain) == (LODGINGS, (FIND,), True)
    assert plan.explanation == ("Calls FIND /rooms.",)
