"""What belongs to no endpoint: policies, catalog, vocabulary, data."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.evolution.contracts import BOOK, MIRRORED, told

from bespeak.checks.evolution.contract_diff import Contract, diff_services
from bespeak.contract.policy import MethodPolicy, Policies, Redirect
from bespeak.contract.service import DataClass, DataManifest, Vocabulary


def policies(**fields: Any) -> Contract:
    return Contract(endpoints=(BOOK,), policies=Policies(**fields))


def methods(**fields: Any) -> Contract:
    return policies(methods=MethodPolicy(**fields))


def words(**fields: Any) -> Contract:
    return Contract(vocabulary=Vocabulary(**fields))


def data(*classes: DataClass, **fields: Any) -> Contract:
    return Contract(vocabulary=Vocabulary(), data_manifest=DataManifest(available_data=classes, **fields))


STAYS = DataClass(name="stays", formats=("json",))
OLD_NAME = Redirect(from_method="RESERVE", to_method="BOOK", to_path="/room")

CASES: list[tuple[Contract, Contract, str, str]] = [
    (policies(wildcards_accepted=True), policies(), "C170", "breaking"),
    (policies(), policies(anonymous_discovery=False), "C170", "breaking"),
    (policies(scope_required_for_invocation=False), policies(), "C170", "breaking"),
    (policies(), policies(scope_required_for_invocation=False), "C171", "safe"),
    (policies(synthesis_enabled=True), policies(), "C170", "breaking"),
    (policies(max_synthesis_depth=9), policies(max_synthesis_depth=3), "C170", "risky"),
    (policies(max_synthesis_depth=3), policies(max_synthesis_depth=9), "C171", "safe"),
    (methods(), methods(disallow=("BOOK",)), "C172", "breaking"),
    (methods(disallow=("BOOK",)), methods(), "C173", "safe"),
    (methods(allow=("BOOK", "CANCEL")), methods(allow=("BOOK",)), "C172", "breaking"),
    (methods(legacy=("GET",)), methods(), "C172", "breaking"),
    (methods(custom=("FROBNICATE",)), methods(), "C172", "breaking"),
    (methods(), methods(redirects=(OLD_NAME,)), "C178", "safe"),
    (methods(), methods(redirects=(Redirect(from_method="BOOK", to_method="LEND"),)), "C178", "breaking"),
    (methods(redirects=(OLD_NAME,)), methods(), "C179", "breaking"),
    (
        methods(redirects=(OLD_NAME,)),
        methods(redirects=(Redirect(from_method="RESERVE", to_method="LEND"),)),
        "C180",
        "risky",
    ),
    (Contract(catalog_version="1.0.0"), Contract(catalog_version="1.1.0"), "C181", "safe"),
    (Contract(catalog_version="1.0.0"), Contract(catalog_version="2.0.0"), "C181", "risky"),
    (words(negotiable=True), words(), "C185", "breaking"),
    (words(), words(negotiable=True), "C186", "safe"),
    (words(declared_verbs=("BOOK", "FIND")), words(declared_verbs=("FIND",)), "C187", "risky"),
    (words(domain="travel"), words(domain="stays"), "C189", "risky"),
    (words(namespace="a"), words(), "C189", "risky"),
    (data(STAYS), data(), "C190", "breaking"),
    (data(), data(STAYS), "C191", "safe"),
    (data(STAYS), data(DataClass(name="stays")), "C192", "breaking"),
    (data(STAYS), data(DataClass(name="stays", formats=("json", "csv"))), "C193", "safe"),
    (data(STAYS), data(DataClass(name="stays", formats=("json",), requires_authorization=True)), "C192", "breaking"),
    (data(STAYS), data(DataClass(name="stays", formats=("json",), sensitivity="high")), "C194", "risky"),
    (data(STAYS), data(DataClass(name="stays", formats=("json",), description="Nights.")), "C104", "safe"),
    (data(STAYS, pre_auth_discovery=True), data(STAYS), "C192", "breaking"),
]


@pytest.mark.parametrize(("old", "new", "rule", "level"), CASES, ids=[f"{case[2]}-{case[3]}" for case in CASES])
def test_each_part_has_its_rule(old: Contract, new: Contract, rule: str, level: str) -> None:
    assert told(diff_services(old, new)) == [(rule, level)]
    [there], [back] = diff_services(old, new), diff_services(new, old)
    assert (back.rule, back.pointer, back.old, back.new) == (
        *(MIRRORED[there.rule], there.pointer, there.new, there.old),
    )


def test_a_list_of_allowed_methods_refuses_every_other() -> None:
    assert [change.message for change in diff_services(methods(), methods(allow=("CANCEL",)))] == [
        "BOOK is refused (allow)",
        "every other method is refused (allow)",
    ]


def test_unspecified_parts_are_not_compared() -> None:
    full = Contract(
        policies=Policies(wildcards_accepted=True),
        vocabulary=Vocabulary(negotiable=True),
        data_manifest=DataManifest(available_data=(STAYS,)),
        catalog_version="1.0.0",
    )
    assert diff_services(full, Contract()) == diff_services(Contract(), full) == diff_services(full, full) == []


def test_catalog_file_is_not_compared_as_version() -> None:
    assert diff_services(Contract(catalog_version="mine.json"), Contract(catalog_version="1.0.0")) == []
