from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.cases import rows

from bespeak.checks.lint.registration import effective_policies
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Deprecation
from bespeak.contract.policy import MethodPolicy, Policies, Redirect
from bespeak.text.diagnostics.diagnostic import Diagnostic

Check = Callable[..., list[str]]


def effective(catalog: Catalog, **fields: Any) -> tuple[MethodPolicy, list[Diagnostic]]:
    policies, findings = effective_policies(Policies(methods=MethodPolicy(**fields)), catalog)
    return policies.methods, findings


def old(version: str = "2.0.0", **fields: Any) -> dict[str, Any]:
    return {"deprecated": Deprecation(deprecated_in=version, **fields)}


@rows(
    "fields, expected",
    *(({"required_scopes": (token,)}, ["Y801"]) for token in ("booking", "Booking:Room", "booking:", ":room")),
    *(({"required_scopes": (token,)}, ["Y801"]) for token in ("booking: room", "", "a:b,c:d")),
    ({"required_scopes": ("booking:room:write", "calendar:*")}, []),
    # A deprecation is sent as a header.
    (old(""), ["Y802"]),
    (old("2.0.0\r\nSet-Cookie: x"), ["Y802"]),
    (old(removed_in="3; successor=X"), ["Y802"]),
    (old(successor_method="reserve"), ["Y802"]),
    (old(successor_path="/rooms/"), ["Y802"]),
    (old(successor_path="/book"), ["Y802"]),
    (old("spring release"), []),
    (old("2", successor_method="RESERVE", successor_path="/rooms"), []),
)
def test_scopes_are_tokens_and_deprecations_fit_a_header(
    check: Check, fields: dict[str, Any], expected: list[str]
) -> None:
    assert check(**fields) == expected


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
    assert (policy.allow, policy.disallow) == (("BOOK",), ("TRANSFER",))
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


PATHS = ({"from_path": "room"}, {"to_path": "/rooms/"}, {"to_path": "/book"})
REDIRECT = Redirect(from_method="BOOK", to_method="RESERVE")


@pytest.mark.requirement("API-3.3-1", "API-9.4-2")
@rows(
    "fields, expected, kept",
    *(({"legacy": ("GET", verb)}, ("Y804", "error"), ("GET", verb)) for verb in ("HEAD", "get", "BOOK", "")),
    *(({"custom": (name,)}, ("Y805", "error"), (name,)) for name in ("frob", "FR", "FROB_IT", "GET")),
    *(({"redirects": (replace(REDIRECT, **paths),)}, ("Y806", "warning"), ()) for paths in PATHS),
    ({"redirects": (replace(REDIRECT, to_method="GET"),)}, ("Y806", "warning"), ()),
    ({"disallow": ("NOTIFY",)}, ("Y808", "warning"), ("NOTIFY",)),
)
def test_wrong_policy_entry_is_reported_and_a_wrong_redirect_skipped(
    catalog: Catalog, fields: dict[str, Any], expected: tuple[str, str], kept: tuple[str, ...]
) -> None:
    policy, (finding,) = effective(catalog, **fields)
    assert (finding.rule, finding.severity) == expected
    assert getattr(policy, *fields) == kept


@pytest.mark.requirement("API-8.7-7")
@pytest.mark.parametrize("depth", [0, -1, True, 2.5, "10"])
def test_the_synthesis_depth_is_a_positive_integer(catalog: Catalog, depth: Any) -> None:
    _, (finding,) = effective_policies(Policies(max_synthesis_depth=depth), catalog)
    assert finding.rule == "Y807"
