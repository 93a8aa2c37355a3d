"""Which parts of a deployment a new catalog breaks."""

from __future__ import annotations

import pytest
from tests.cases import rows
from tests.checks.evolution.contracts import book

from bespeak.checks.evolution.catalog_diff import CatalogConflict, CatalogDiff, scan_deployment
from bespeak.contract.catalog.catalog import Verb
from bespeak.contract.endpoint import Deprecation, Endpoint
from bespeak.contract.policy import MethodPolicy, Policies, Redirect
from bespeak.contract.recipe import Recipe, RecipeStep
from bespeak.text.source.tree import Location

pytestmark = pytest.mark.requirement("API-4.7-1")


def verb(name: str, deprecated_in: str | None = None, successor: str | None = None) -> Verb:
    fate = {"deprecated_in": deprecated_in, "removed_in": "3.0.0" if deprecated_in else None, "successor": successor}
    return Verb(name=name, categories=("analysis",), description="Do a thing", **fate)  # type: ignore[arg-type]


DIFF = CatalogDiff(
    old_version="1.9.0",
    new_version="2.0.0",
    added=(verb("LOG"), verb("MAP")),
    removed=(verb("AUDITLOG", "1.1.0", successor="LOG"), verb("RENT")),
    newly_deprecated=(verb("BUY", "2.0.0", successor="PURCHASE"),),
)


def endpoint(method: str, path: str, deprecated: Deprecation | None = None) -> Endpoint:
    return book(method=method, path=path, deprecated=deprecated, location=Location("endpoints/some.toml", 3))


def recipe(*steps: tuple[str, str | None]) -> Recipe:
    return Recipe(
        name="trip",
        steps=tuple(RecipeStep(method=method, path=path) for method, path in steps),
        location=Location("agtp-recipes.toml"),
    )


def scan(
    *endpoints: Endpoint, recipes: tuple[Recipe, ...] = (), policy: MethodPolicy | None = None
) -> list[CatalogConflict]:
    return scan_deployment(endpoints, recipes, Policies(methods=policy or MethodPolicy()), DIFF)


def found(conflicts: list[CatalogConflict]) -> list[tuple[str, str, str, bool]]:
    return [(conflict.kind, conflict.method, conflict.artefact, conflict.breaking) for conflict in conflicts]


def test_unaffected_deployment_has_no_findings_and_otherwise_every_fault_is_reported() -> None:
    policy = MethodPolicy(allow=("BOOK",), disallow=("SELL",), redirects=(Redirect(from_method="A", to_method="B"),))
    assert scan(endpoint("BOOK", "/room"), recipes=(recipe(("BOOK", "/room")),), policy=policy) == []
    assert [conflict.method for conflict in scan(endpoint("QUERY", "/map/log"))] == ["LOG", "MAP"]
    assert [conflict.kind for conflict in scan(endpoint("RENT", "/map"))] == ["endpoint", "path"]
    assert [conflict.kind for conflict in scan(recipes=(recipe(("QUERY", "/map")),))] == ["path"]


def test_an_endpoint_with_a_removed_method_breaks() -> None:
    (conflict,) = scan(endpoint("AUDITLOG", "/entries"))
    assert found([conflict]) == [("endpoint", "AUDITLOG", "endpoint AUDITLOG /entries", True)]
    assert str(conflict).startswith(
        "endpoints/some.toml:3: endpoint AUDITLOG /entries: AUDITLOG is not in catalog 2.0.0"
    )
    assert "Use LOG in its place" in conflict.help
    (without_successor,) = scan(endpoint("RENT", "/rooms"))
    assert without_successor.help.startswith("Choose another verb")


@pytest.mark.parametrize("path", ["/log", "/LOG", "/rooms/l-o_g", "/l%6Fg/{id}"])
def test_a_path_with_a_new_verb_in_it_breaks(path: str) -> None:
    (conflict,) = scan(endpoint("QUERY", path))
    assert found([conflict]) == [("path", "LOG", f"endpoint QUERY {path}", True)]
    assert "460" in conflict.message


@pytest.mark.parametrize("path", ["/logs", "/log-entries", "/{log}", "/", "/auditlog"])
def test_a_path_without_a_new_verb_as_a_whole_segment_is_fine(path: str) -> None:
    assert scan(endpoint("QUERY", path)) == []


def test_recipe_with_a_removed_method_in_a_step_or_pattern_or_a_leaking_path_breaks() -> None:
    conflicts = scan(recipes=(recipe(("BOOK", "/room"), ("RENT", "/car"), ("AUDITLOG", None)),))
    assert found(conflicts) == [
        ("recipe", "RENT", "recipe trip, step 2 (RENT /car)", True),
        ("recipe", "AUDITLOG", "recipe trip, step 3 (AUDITLOG)", True),
    ]
    assert str(conflicts[0].location) == "agtp-recipes.toml"
    pattern = {"name_exact": "RENT", "path_exact": "/map"}
    waiting = Recipe(name="cars", steps=(RecipeStep(method="BOOK"),), pattern=pattern)
    assert found(scan(recipes=(waiting,))) == [
        ("recipe", "RENT", "recipe cars, its pattern", True),
        ("path", "MAP", "recipe cars, its pattern", True),
    ]


def test_allow_and_disallow_entries_that_would_be_skipped_are_reported() -> None:
    conflicts = scan(policy=MethodPolicy(allow=("BOOK", "RENT"), disallow=("AUDITLOG", "PATCH")))
    assert found(conflicts) == [
        ("policy", "RENT", "policies.methods.allow", True),
        ("policy", "AUDITLOG", "policies.methods.disallow", True),
    ]
    assert all("skipped" in conflict.message for conflict in conflicts)
    assert conflicts[0].help.startswith("Drop the entry, or list RENT in policies.methods.custom")
    assert conflicts[1].help.startswith("Name LOG in its place, drop the entry, or list AUDITLOG")


@rows(
    "redirect, method",
    (Redirect(from_method="RENT", to_method="BOOK", from_path="/room", to_path="/room"), "RENT"),
    (Redirect(from_method="BOOK", to_method="RENT"), "RENT"),
)
def test_a_redirect_from_or_to_a_removed_method_breaks(redirect: Redirect, method: str) -> None:
    (conflict,) = scan(policy=MethodPolicy(redirects=(redirect,)))
    assert (conflict.kind, conflict.method, conflict.breaking) == ("policy", method, True)
    assert "the redirect is skipped" in conflict.message


def test_only_policies_that_a_removed_method_breaks_are_reported() -> None:
    same = Redirect(from_method="BOOK", to_method="RESERVE", from_path="/map", to_path="/map")
    moved = Redirect(from_method="BOOK", to_method="RESERVE", from_path="/rooms", to_path="/log")
    assert [(c.kind, c.method) for c in scan(policy=MethodPolicy(redirects=(same,)))] == [("path", "MAP")]
    assert [(c.kind, c.method) for c in scan(policy=MethodPolicy(redirects=(moved,)))] == [("path", "LOG")]
    policy = MethodPolicy(allow=("RENT",), custom=("RENT",))
    assert scan(endpoint("RENT", "/car"), recipes=(recipe(("RENT", "/car")),), policy=policy) == []
    redirect = Redirect(from_method="BUY", to_method="PURCHASE")
    assert scan(policy=MethodPolicy(allow=("BUY",), disallow=("BUY",), redirects=(redirect,))) == []
    gone = Deprecation(deprecated_in="1.0.0", successor_method="RENT", successor_path="/room")
    (conflict,) = scan(endpoint("BOOK", "/room", gone))
    assert found([conflict]) == [("endpoint", "RENT", "endpoint BOOK /room, its successor", False)]


def test_newly_deprecated_method_in_use_is_only_advice() -> None:
    conflicts = scan(
        endpoint("BUY", "/ticket"),
        recipes=(recipe(("BUY", None)),),
        policy=MethodPolicy(redirects=(Redirect(from_method="PAY", to_method="BUY"),)),
    )
    assert found(conflicts) == [
        ("deprecation", "BUY", "endpoint BUY /ticket", False),
        ("deprecation", "BUY", "recipe trip, step 1 (BUY)", False),
        ("deprecation", "BUY", "policies.methods.redirects, PAY -> BUY", False),
    ]
    assert conflicts[0].help == "Move to PURCHASE."
    assert "will be removed in 3.0.0" in conflicts[0].message


def test_the_json_form_gives_the_place_as_text() -> None:
    (conflict,) = scan(endpoint("RENT", "/rooms"))
    assert conflict.to_json() == {
        "kind": "endpoint",
        "method": "RENT",
        "artefact": "endpoint RENT /rooms",
        "message": conflict.message,
        "help": conflict.help,
        "breaking": True,
        "location": "endpoints/some.toml:3",
    }
