from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bespeak.checks.lint.registration import effective_policies
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Deprecation
from bespeak.contract.policy import MethodPolicy, Policies, Redirect
from bespeak.text.diagnostics.diagnostic import Diagnostic

Check = Callable[..., list[str]]


def effective(catalog: Catalog, **fields: Any) -> tuple[MethodPolicy, list[Diagnostic]]:
    policies, findings = effective_policies(Policies(methods=MethodPolicy(**fields)), catalog)
    return policies.methods, findings


@pytest.mark.parametrize("token", ["booking", "Booking:Room", "booking:", ":room", "booking: room", "", "a:b,c:d"])
def test_a_required_scope_is_a_token(check: Check, token: str) -> None:
    assert check(required_scopes=(token,)) == ["Y801"]


def test_scopes_may_be_deep_and_wild(check: Check) -> None:
    assert check(required_scopes=("booking:room:write", "calendar:*")) == []


@pytest.mark.parametrize(
    "deprecated",
    [
        Deprecation(deprecated_in=""),
        Deprecation(deprecated_in="2.0.0\r\nSet-Cookie: x"),
        Deprecation(deprecated_in="2.0.0", removed_in="3; successor=X"),
        Deprecation(deprecated_in="2.0.0", successor_method="reserve"),
        Deprecation(deprecated_in="2.0.0", successor_path="/rooms/"),
        Deprecation(deprecated_in="2.0.0", successor_path="/book"),
    ],
)
def test_a_deprecation_that_makes_no_sound_header_is_refused(check: Check, deprecated: Deprecation) -> None:
    assert check(deprecated=deprecated) == ["Y802"]


def test_deprecation_may_omit_unknown_members(check: Check) -> None:
    assert check(deprecated=Deprecation(deprecated_in="spring release")) == []
    assert check(deprecated=Deprecation(deprecated_in="2", successor_method="RESERVE", successor_path="/rooms")) == []


@pytest.mark.requirement("API-4.5-4", "API-9.4-1")
def test_a_policy_entry_of_a_lost_method_is_skipped_with_a_warning_each(catalog: Catalog) -> None:
    policy, findings = effective(
        catalog,
        allow=("BOOK", "FROB"),
        disallow=("TRANSFER", "TWIDDLE"),
        redirects=(
            Redirect(from_method="BOOK", to_method="RESERVE"),
            Redirect(from_method="FROB", to_method="RESERVE"),
            Redirect(from_method="BOOK", to_method="FROB"),
        ),
    )
    assert policy.allow == ("BOOK",)
    assert policy.disallow == ("TRANSFER",)
    assert policy.redirects == (Redirect(from_method="BOOK", to_method="RESERVE"),)
    assert [(finding.rule, finding.severity, finding.pointer) for finding in findings] == [
        ("Y803", "warning", "/policies/methods/redirects/1"),
        ("Y803", "warning", "/policies/methods/redirects/2"),
        ("Y803", "warning", "/policies/methods/allow/1"),
        ("Y803", "warning", "/policies/methods/disallow/1"),
    ]
    assert all("catalog 1.1.0" in finding.message for finding in findings)


def test_policy_may_name_custom_and_legacy_methods(catalog: Catalog) -> None:
    given = {
        "allow": ("FROBNICATE", "GET"),
        "disallow": ("PATCH",),
        "legacy": ("GET",),
        "custom": ("FROBNICATE",),
        "redirects": (Redirect(from_method="GET", to_method="FROBNICATE"),),
    }
    policy, findings = effective(catalog, **given)
    assert findings == []
    assert policy == MethodPolicy(**given)


@pytest.mark.requirement("API-9.4-2")
@pytest.mark.parametrize("verb", ["HEAD", "get", "BOOK", ""])
def test_anything_but_the_five_verbs_in_legacy_is_an_error(catalog: Catalog, verb: str) -> None:
    _, (finding,) = effective(catalog, legacy=("GET", verb))
    assert (finding.rule, finding.severity) == ("Y804", "error")


@pytest.mark.requirement("API-3.3-1")
@pytest.mark.parametrize("method", ["frob", "FR", "FROB_IT", "GET"])
def test_custom_method_follows_the_syntax_and_is_not_an_http_verb(catalog: Catalog, method: str) -> None:
    _, (finding,) = effective(catalog, custom=(method,))
    assert (finding.rule, finding.severity) == ("Y805", "error")


@pytest.mark.parametrize("paths", [{"from_path": "room"}, {"to_path": "/rooms/"}, {"to_path": "/book"}])
def test_a_redirect_whose_path_breaks_the_grammar_is_skipped_with_a_warning(
    catalog: Catalog, paths: dict[str, str]
) -> None:
    policy, (finding,) = effective(catalog, redirects=(Redirect(from_method="BOOK", to_method="RESERVE", **paths),))
    assert (finding.rule, finding.severity) == ("Y806", "warning")
    assert policy.redirects == ()


@pytest.mark.requirement("API-8.7-7")
@pytest.mark.parametrize("depth", [0, -1, True, 2.5, "10"])
def test_the_synthesis_depth_is_a_positive_integer(catalog: Catalog, depth: Any) -> None:
    _, (finding,) = effective_policies(Policies(max_synthesis_depth=depth), catalog)
    assert finding.rule == "Y807"


def test_a_redirect_to_a_legacy_verb_is_skipped(catalog: Catalog) -> None:
    policy, (finding,) = effective(catalog, redirects=(Redirect(from_method="BOOK", to_method="GET"),))
    assert (finding.rule, finding.severity, policy.redirects) == ("Y806", "warning", ())


def test_a_disallowed_floor_method_is_warned_of_and_stays_disallowed(catalog: Catalog) -> None:
    policy, (finding,) = effective(catalog, disallow=("NOTIFY",))
    assert (finding.rule, finding.severity, policy.disallow) == ("Y808", "warning", ("NOTIFY",))
