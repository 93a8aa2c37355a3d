"""A grant gives scopes for what it names, as long as it and its granter are valid."""

from __future__ import annotations

import pytest
from tests.service import make_endpoint

from bespeak.runtime.identity.grants import Grant

NEWS = make_endpoint("FETCH", "/news/today", dict)


@pytest.mark.parametrize(
    ("resource", "fields", "holds"),
    [
        ("*", {}, True),
        ("/news", {}, True),
        ("/", {}, True),
        ("/new", {}, False),
        ("/news/today", {}, True),
        ("FETCH /news/today", {}, True),
        ("BOOK /news/today", {}, False),
        ("FETCH /news", {}, False),
        ("/news", {"methods": ("BOOK",)}, False),
        ("/news", {"paths": ("/news/today",)}, True),
        ("/news", {"paths": ("/news",)}, False),
    ],
)
def test_a_grant_holds_for_its_resource_and_conditions(
    resource: str, fields: dict[str, tuple[str, ...]], holds: bool
) -> None:
    assert Grant("s", resource, ("a:b",), "g", 1e12, **fields).holds_for(NEWS) is holds
