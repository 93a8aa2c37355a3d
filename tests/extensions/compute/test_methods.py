"""FILTER, VALIDATE, RANK, CALCULATE and EVALUATE (Tier 2 4): over rows that are given or named."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.extensions.acquire.test_collections import manifest
from tests.extensions.acquire.test_methods import code, good
from tests.service import build
from tests.stateful import StatefulBench, keeping
from tests.things import contracts, joining

from bespeak import App, ContractError
from bespeak.extensions.compute.formula import NAMES, FormulaError, compute
from bespeak.state.store.settings import open_store

pytestmark = [pytest.mark.anyio, pytest.mark.process]  # expressions run in processes of their own
PLAIN = st.integers() | st.text(max_size=5) | st.floats() | st.none() | st.booleans()
FORMULAS = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*NAMES, "input", "less", "x"]), inner, max_size=2)
    ),
    max_leaves=12,
)
SERVICE = {
    "methods": ("FILTER", "VALIDATE", "RANK", "CALCULATE", "EVALUATE", "REGISTER"),
    "participants": joining(contracts),
}
ROOMS: list[dict[str, Any]] = [
    {"name": "Attic", "price": 80, "beds": 1, "tags": ["quiet"]},
    {"name": "Suite", "price": 240.5, "beds": 3, "tags": ["sea", "quiet"]},
    {"name": "Cellar", "price": "free", "beds": 0},
]


@pytest.mark.requirement("METHODS-4.2-2", "METHODS-4.2-3")
async def test_filter_keeps_rows_that_meet_an_expression_or_an_object() -> None:
    async with keeping(**SERVICE) as bench:
        found = await good(bench, "FILTER", data=ROOMS, criteria="price < 200 && beds >= 0")
        assert ([row["name"] for row in found["rows"]], found["examined"]) == (["Attic"], 3)
        assert (found["failed"], "first_failure" in found) == (1, True)
        found = await good(bench, "FILTER", data=ROOMS, criteria="has(row.tags) && 'sea' in row.tags")
        assert [row["name"] for row in found["rows"]] == ["Suite"]
        found = await good(bench, "FILTER", data=ROOMS, criteria={"price": {"max": 100}, "name": {"contains": "att"}})
        assert [row["name"] for row in found["rows"]] == ["Attic"]
        text = await good(bench, "FILTER", data=ROOMS, criteria="beds == 1", output_format="csv")
        assert text["content"] == 'name,price,beds,tags\r\nAttic,80,1,"[""quiet""]"\r\n'
        text = await good(bench, "FILTER", data=[{"a": "=1+1"}], criteria="true", output_format="csv")
        assert text["content"] == "a\r\n'=1+1\r\n"
        assert (await good(bench, "FILTER", data=[], criteria="beds == 1"))["count"] == 0


async def test_filter_reads_a_collection_by_its_name_and_its_authority(tmp_path: Path) -> None:
    async with keeping(**SERVICE, data_manifest=manifest(tmp_path, sensitivity="high")) as bench:
        given: dict[str, Any] = {"data": {"collection": "ledger", "filter": {"account": "a-1"}}}
        found = await good(bench, "FILTER", **given, criteria="amount > 0.0", authority="data:ledger")
        assert [row["id"] for row in found["rows"]] == [1, 4, 6]
        assert await code(bench, "FILTER", **given, criteria="true") == (404, "collection-not-found")


@pytest.mark.requirement("METHODS-4.2-4", "METHODS-4.2-5", "METHODS-4.8-5", "METHODS-4.11-5")
async def test_an_expression_that_is_wrong_or_explodes_is_refused() -> None:
    async with keeping(**SERVICE) as bench:
        wrong = {
            "1 +": (400, "invalid-expression"),
            "unknown > 3": (400, "invalid-expression"),
            "__import__('os')": (400, "invalid-expression"),
            "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, "
            "[1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, e > 0)))))": (200, ""),
            "(" * 3000 + "true" + ")" * 3000: (422, ""),
        }
        for text, (number, name) in wrong.items():
            status, found = await code(bench, "FILTER", data=[{"a": 1}], criteria=text)
            assert status == number, text
            assert not name or found == name, text
        assert await code(bench, "FILTER", data=[], criteria={"a": {"near": 1}}) == (422, "invalid-criteria")
        assert await code(bench, "RANK", items=[{"a": 1}], criterion="1 +") == (400, "invalid-expression")
        wrong_criterion = [{"name": "x", "value": "1 +"}]
        refused = await code(bench, "EVALUATE", target={"a": 1}, criteria=wrong_criterion)
        assert refused == (400, "invalid-expression")


@pytest.mark.requirement("METHODS-4.3-2", "METHODS-4.3-3", "METHODS-4.3-4")
async def test_validate_reports_every_error_with_its_place() -> None:
    async with keeping(**SERVICE) as bench:
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["id"]}
        found = await good(bench, "VALIDATE", target={"n": "x"}, schema=schema)
        assert (found["valid"], sorted(one["pointer"] for one in found["errors"])) == (False, ["", "/n"])
        assert (await good(bench, "VALIDATE", target={"id": 1, "n": 2}, schema=schema))["valid"]
        assert not (await good(bench, "VALIDATE", target={"title": 3}, schema="contract"))["valid"]
        rules = [{"rule": "row.total > 0", "message": "total"}, {"rule": "row.total < 9", "severity": "warning"}]
        for total, strict, valid, counts in (
            (5, False, True, (0, 0)),
            (20, False, True, (0, 1)),
            (20, True, False, (0, 1)),
        ):
            found = await good(bench, "VALIDATE", target={"total": total}, schema={"rules": rules}, strict=strict)
            assert (found["valid"], (len(found["errors"]), len(found["warnings"]))) == (valid, counts)
        missing = await good(bench, "VALIDATE", target={}, schema={"rules": rules})
        assert (missing["valid"], missing["errors"][0]["message"].startswith("total: ")) == (False, True)


@pytest.mark.requirement("METHODS-4.3-1", "METHODS-4.3-5", "METHODS-4.3-6")
async def test_validate_checks_a_call_against_the_contract_without_making_it() -> None:
    async with keeping(**SERVICE) as bench:
        action: dict[str, Any] = {"method": "REGISTER", "path": "/", "parameters": {"entity_type": "contract"}}
        found = await good(bench, "VALIDATE", target=action)
        assert [one["pointer"] for one in found["errors"]] == ["/parameters"]
        action["parameters"]["data"] = {"title": "x"}
        assert (await good(bench, "VALIDATE", target=action))["valid"]
        assert not (await good(bench, "VALIDATE", target={"method": "FLY"}))["valid"]
        assert await code(bench, "VALIDATE", target=7) == (422, "invalid-schema")
        for schema in ({"type": "moon"}, {"$ref": "http://127.0.0.1:1/x"}, {"rules": []}, {"rules": [{"rule": 1}]}):
            assert await code(bench, "VALIDATE", target=1, schema=schema) == (400, "invalid-schema"), schema
        assert await code(bench, "VALIDATE", target=1, schema="moon") == (422, "unknown-schema")


@pytest.mark.requirement("METHODS-4.8-2", "METHODS-4.8-3", "METHODS-4.8-4", "METHODS-4.8-5")
async def test_rank_orders_items_by_the_criterion_and_gives_each_its_score() -> None:
    async with keeping(**SERVICE) as bench:

        async def names(criterion: Any, **more: Any) -> list[str]:
            found = await good(bench, "RANK", items=ROOMS, criterion=criterion, **more)
            assert found["count"] + found["unranked"] == 3 or more
            return [one["item"]["name"] for one in found["ranked"]]

        assert await names("price") == ["Suite", "Attic"]
        assert await names("beds * 2") == ["Suite", "Attic", "Cellar"]
        assert await names({"weights": {"price": -1}}) == ["Attic", "Suite"]
        assert await names({"weights": {"price": -1, "beds": 3}}) == ["Suite", "Attic"]
        assert await names({"words": "sea"}) == ["Suite"]
        assert await names("beds", limit=1) == ["Suite"]
        odd = await good(bench, "RANK", items=[{"a\nb": 1}], criterion="a\nb")
        assert odd["method"] == "column"  # the name of a method has no controls
        found = await good(bench, "RANK", items=ROOMS, criterion="price")
        assert ([one["score"] for one in found["ranked"]], found["method"]) == ([240.5, 80.0], "column price")
        for wrong in ("prise", "prise * 2", {"weights": {"price": 1, "prise": 1}}):
            reply = await bench.send("RANK", "/", {"items": ROOMS, "criterion": wrong})
            assert reply.refusal == (400, "invalid-expression")
            assert "prise" in reply.error["message"]
            assert 'The columns are: "name", "price"' in reply.error["message"]
        for criterion in ({"weights": {}}, {"magic": 1}, {}):
            assert (await code(bench, "RANK", items=ROOMS, criterion=criterion))[0] == 422


@pytest.mark.requirement("METHODS-4.10-3", "METHODS-4.10-4", "METHODS-4.10-5")
async def test_calculate_is_exact_for_money_and_echoes_what_it_computed() -> None:
    async with keeping(**SERVICE) as bench:
        net = {"add": {"input": "lines"}}
        formula = {"add": [net, {"percent": [net, {"input": "vat"}]}]}
        inputs = {"lines": [0.1, 0.2, "19.995"], "vat": 19}
        found = await good(bench, "CALCULATE", expression=formula, inputs=inputs, currency="EUR")
        assert (found["result"], found["currency"], found["precision"]) == ("24.15", "EUR", 2)
        assert (found["inputs"], found["expression"]) == (inputs, formula)
        assert (await good(bench, "CALCULATE", expression=formula, inputs=inputs, currency="JPY"))["result"] == "24"
        found = await good(bench, "CALCULATE", expression={"divide": [1, 3]}, inputs={}, precision=4)
        assert found["result"] == "0.3333"
        choice = {"if": [{"at_least": [{"input": "n"}, 10]}, {"multiply": [{"input": "n"}, "0.9"]}, {"input": "n"}]}
        assert (await good(bench, "CALCULATE", expression=choice, inputs={"n": 10}))["result"] == "9"
        found = await good(bench, "CALCULATE", expression="a * 2.0 + b", inputs={"a": 1.25, "b": 0.5}, precision=1)
        assert (found["result"], found["method"]) == (3.0, "CEL, binary floating point")


@pytest.mark.requirement("METHODS-4.10-6")
async def test_calculate_refuses_formulas_without_a_value() -> None:
    async with keeping(**SERVICE) as bench:
        wrong: list[tuple[Any, dict[str, Any], tuple[int, str]]] = [
            ({"divide": [1, 0]}, {}, (422, "not-computable")),
            ({"power": [10, 5000]}, {}, (422, "not-computable")),
            ({"input": "x"}, {"x": "many"}, (422, "not-computable")),
            ({"input": "x"}, {"x": 1e400}, (422, "not-computable")),
            ({"input": "y"}, {"x": 1}, (400, "invalid-formula")),
            ({"fly": [1]}, {}, (400, "invalid-formula")),
            ({"add": []}, {}, (400, "invalid-formula")),
            ({"if": [1, 2, 3]}, {}, (400, "invalid-formula")),
            ({"round": [1, 99]}, {}, (400, "invalid-formula")),
            ("1/0", {}, (422, "expression-failed")),
            ("1 +", {}, (400, "invalid-expression")),
        ]
        for expression, inputs, expected in wrong:
            if "x" in inputs and inputs["x"] == 1e400:
                continue  # JSON has no such number; a text has
            assert await code(bench, "CALCULATE", expression=expression, inputs=inputs) == expected, expression
        nested: Any = 1
        for _ in range(100):
            nested = {"add": [nested]}
        assert (await code(bench, "CALCULATE", expression=nested, inputs={}))[0] == 400
        assert await code(bench, "CALCULATE", expression="1", inputs={}, currency="EUR") == (422, "invalid-currency")


VAT: dict[str, Any] = {"if": [{"less": [{"input": "n"}, 0]}, 0, {"add": {"input": "lines"}}]}


@pytest.mark.requirement("METHODS-4.10-1")
async def test_a_formula_of_the_service_is_named_checked_and_echoed() -> None:
    def declare(app: App) -> None:
        app.formula("vat", VAT, description="Value added tax")
        wrong: list[tuple[str, Any, str]] = [
            ("vat", VAT, "another formula has its name"),
            ("Other", VAT, "lower-case words"),
            ("branch", {"if": [{"less": [1, 2]}, 1, {"fly": [1]}]}, "'fly' is not an operation"),
            ("text", "a * 2", "must be a number"),
            ("list", {"add": {"x": 1}}, "takes a list"),
            ("input", {"input": 3}, "names the input"),
        ]
        for name, formula, fault in wrong:
            with pytest.raises(ContractError, match=fault):
                app.formula(name, formula)

    async with keeping(participants=joining(declare)) as bench:
        found = await good(bench, "CALCULATE", expression={"formula": "vat"}, inputs={"n": 1, "lines": [1, "2.5"]})
        assert (found["result"], found["formula"], found["expression"]) == ("3.5", "vat", VAT)
        for name in ("tax", 7):
            refused = await bench.send("CALCULATE", "/", {"expression": {"formula": name}, "inputs": {}})
            assert (refused.refusal, refused.error["formulas"]) == ((422, "unknown-formula"), ["vat"])
        manifest = (await bench.send("DISCOVER", "/", agent=None)).json
        published = next(one for one in manifest["endpoints"] if one["method"] == "CALCULATE")
        assert published["description"].endswith("This service has: vat.")


@given(FORMULAS)
def test_any_formula_has_a_finite_value_or_is_refused(formula: Any) -> None:
    try:
        value = compute(formula, {"x": 2})
    except FormulaError:
        return
    compute(formula, None)  # what has a value is valid without its inputs
    assert isinstance(value, Decimal)
    assert value.is_finite()


@pytest.mark.requirement("METHODS-4.11-2", "METHODS-4.11-3", "METHODS-4.11-4", "METHODS-4.11-5")
async def test_evaluate_grades_by_weighted_criteria_with_a_rationale() -> None:
    async with keeping(**SERVICE) as bench:
        criteria = [
            {"name": "price", "value": "price", "worst": 200, "best": 100},
            {"name": "certified", "value": "row.iso"},
        ]
        target = {"price": 150, "iso": True}
        found = await good(bench, "EVALUATE", target=target, criteria=criteria)
        assert ([one["score"] for one in found["criteria"]], found["score"]) == ([0.5, 1.0], 0.75)
        found = await good(
            bench,
            "EVALUATE",
            target=target,
            criteria=criteria,
            weights={"price": 3, "certified": 1},
            rubric={"poor": 0, "fair": 0.6, "good": 0.8},
        )
        assert (found["score"], found["label"]) == (0.625, "fair")
        assert found["rationale"] == (
            "The score is 0.62: price is 150, which scores 0.50 and counts 75%; "
            "certified is True, which scores 1.00 and counts 25%."
        )
        broken: list[dict[str, Any]] = [
            {"criteria": [{"name": "x", "value": "row.missing"}]},
            {"criteria": [{"name": "x", "value": "'text'"}]},
            {"criteria": criteria, "weights": {"colour": 1}},
            {"criteria": criteria, "weights": {"price": 0, "certified": 0}},
            {"criteria": [criteria[0], criteria[0]]},
            {"criteria": [{"name": "x", "value": "1", "worst": 1, "best": 1}]},
        ]
        for given_ in broken:
            assert (await code(bench, "EVALUATE", target=target, **given_))[0] == 422, given_


async def test_methods_that_compute_need_no_store() -> None:
    bench = StatefulBench(build(methods=SERVICE["methods"]), open_store("memory"))  # a store that the server lacks
    assert (await good(bench, "FILTER", data=ROOMS, criteria={"beds": 1}))["count"] == 1
    assert (await code(bench, "REGISTER", entity_type="contract", data={"title": "x"}))[0] == 501
