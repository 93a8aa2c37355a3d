"""Members come from the table of the core ontology."""

from __future__ import annotations

from bespeak.contract.ontology.core import PROPERTIES
from bespeak.documents.envelope.expansion import LABEL, MEMBERS


def test_each_property_is_a_member_of_its_classes() -> None:
    for name, one in PROPERTIES.items():
        holders = {kind for kind, members in MEMBERS.items() if name in members}
        assert holders == set(one.domains)
    assert all(members[LABEL].value == "literal" for members in MEMBERS.values())
