"""What a composition may be made of for a caller."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.runtime.negotiation.negotiating import CANCEL, FIND, LODGINGS
from tests.service import AGENT, build, echo, make_endpoint

from bespeak.contract.data_set import DataColumn, DataSet
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import Composition
from bespeak.contract.negotiation import ForbiddenCombination, NegotiationSettings
from bespeak.contract.policy import MethodPolicy, Policies
from bespeak.contract.service import DataManifest
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.principal import ANONYMOUS, Principal, Scopes
from bespeak.runtime.call import Call
from bespeak.runtime.negotiation.evaluation import (
    find_forbidden,
    list_parts,
    may_use,
    refuse_missing_scopes,
    refuse_unauthorized_data,
)

SECRET = replace(make_endpoint("FETCH", "/secrets", echo, scopes=("secrets:read",)), internal=True)
KNOWN = Principal(agent_id=AGENT)
TRUSTED = Principal(agent_id=AGENT, scopes=Scopes(["secrets:read", "stays:cancel"]))


def call(principal: Principal = KNOWN, **policies: Any) -> Call:
    given = Policies(**{"scope_required_for_invocation": False, **policies})
    bench = build(FIND, CANCEL, SECRET, policies=given)
    made = Call(Request("PROPOSE", "/", "", {}, b"", Connection()), bench.server)
    made.principal = principal
    return made


def usable(endpoint: Endpoint, principal: Principal = KNOWN, *internal: str, **policies: Any) -> bool:
    return may_use(call(principal, **policies), NegotiationSettings(internal=internal), endpoint)


def test_public_endpoints_are_used_whether_or_not_their_scopes_are_held() -> None:
    assert usable(FIND)
    assert usable(CANCEL)


@pytest.mark.requirement("API-16.2-2")
def test_internal_endpoints_are_used_only_where_the_operator_allows_it_and_with_their_scopes() -> None:
    assert not usable(SECRET, TRUSTED)
    assert usable(SECRET, TRUSTED, "FETCH /secrets")
    assert usable(SECRET, TRUSTED, "FETCH /sec*")
    assert not usable(SECRET, TRUSTED, "FETCH /other")
    assert not usable(SECRET, KNOWN, "FETCH /secrets")


def test_what_a_caller_may_not_discover_is_not_used() -> None:
    assert not usable(CANCEL, ANONYMOUS, anonymous_discovery=False)
    assert usable(CANCEL, TRUSTED, anonymous_discovery=False)


def test_built_in_and_disallowed_and_unknown_endpoints_are_not_used() -> None:
    routes = call().routes
    assert not usable(routes.endpoints["DISCOVER", "/"])
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
    assert refused is not None
    assert (refused.status, refused.details["type"]) == (262, "scope-required")
    assert refused.details["missing_scopes"] == ["a:b", "stays:cancel"]
    assert refuse_missing_scopes(call(TRUSTED), ["stays:cancel"]) is None
    assert refuse_missing_scopes(call(ANONYMOUS), []) is None


@pytest.mark.requirement("API-16.2-2")
@pytest.mark.parametrize(
    ("together", "forbidden"),
    [
        (("FIND /rooms", "CANCEL /stays"), True),
        (("FIND /rooms", "CANCEL /guests"), False),
        (("FIND *", "scope:stays:*"), True),
        (("data:guests", "CANCEL *"), True),
        (("data:payments", "CANCEL *"), False),
        (("namespace:desk",), True),
    ],
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
