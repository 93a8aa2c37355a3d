"""Plans, carried out: what the planner writes does what the proposal asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.extensions.negotiation.planner.contracts import contract
from tests.service import Bench, build

from bespeak.contract.endpoint import DeclaredError, Endpoint
from bespeak.contract.handler import Composition, RegisteredFunction
from bespeak.extensions.negotiation.plan import Plan
from bespeak.extensions.negotiation.planner.planner import Planner

CUSTOMERS = [
    {"id": "c1", "name": "Ada", "email": "ada@example.org", "address": {"city": "Riga"}},
    {"id": "c2", "name": "Bo", "email": "bo@example.org", "address": {"city": "Oslo"}},
]
ORDERS = [
    {"id": "o1", "customer_id": "c1", "product_id": "p1", "total": 30.0, "placed": "2026-01-05"},
    {"id": "o2", "customer_id": "c2", "product_id": "p2", "total": 80.0, "placed": "2026-02-07"},
    {"id": "o3", "customer_id": "c1", "product_id": "p2", "total": 55.0, "placed": "2026-03-09"},
]
PRODUCTS = {"p1": {"id": "p1", "title": "Lamp", "price": 30.0}, "p2": {"id": "p2", "title": "Desk", "price": 55.0}}
refunded: list[dict[str, Any]] = []


def list_customers(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    return {"customers": CUSTOMERS}


def fetch_customer(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    return next(one for one in CUSTOMERS if one["id"] == input["id"])


def list_orders(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    wanted = input.get("customer_id")
    kept = [one for one in ORDERS if wanted in (None, one["customer_id"])]
    start = int(input.get("cursor", "0"))
    page = {"orders": kept[start : start + 1]}
    return page | ({"next_cursor": str(start + 1)} if start + 1 < len(kept) else {})


def fetch_order(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    return next(one for one in ORDERS if one["id"] == input["id"])


def fetch_product(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    return PRODUCTS[input["id"]]


def refund(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    refunded.append(input)
    return {"refund_id": f"r-{input['id']}"}


SHOP: dict[str, Callable[..., Any]] = {
    "LIST /customers -> customers[].id customers[].name customers[].email:e customers[].address.city": list_customers,
    "FETCH /customers/{id} -> id name email:e address.city": fetch_customer,
    "LIST /orders customer_id? cursor? -> orders[].id orders[].customer_id orders[].product_id orders[].total:n "
    "orders[].placed:d next_cursor?": list_orders,
    "FETCH /orders/{id} -> id customer_id product_id total:n placed:d": fetch_order,
    "FETCH /products/{id} -> id title price:n": fetch_product,
    "!REFUND /orders/{id} reason -> refund_id": refund,
}
ENDPOINTS = [
    replace(contract(line), handler=RegisteredFunction(function="tests.function", target=target))
    for line, target in SHOP.items()
]


def serve(line: str) -> tuple[Bench, Endpoint]:
    """Plan a proposal and serve it beside the shop."""
    proposal = contract(line)
    plan = Planner(ENDPOINTS).plan(proposal)
    assert isinstance(plan, Plan), plan
    assert plan.is_certain, plan.doubts
    endpoint = replace(
        proposal,
        handler=Composition(recipe=plan.recipe.name),
        errors=(DeclaredError("composition_failed"),),
        semantic=replace(proposal.semantic, confidence=plan.confidence, is_idempotent=plan.is_idempotent),
    )
    bench = build(*ENDPOINTS, endpoint, recipes=(plan.recipe,))
    assert [finding.message for finding in bench.findings if finding.severity == "error"] == []
    return bench, endpoint


@pytest.mark.parametrize(
    ("line", "sent", "answer"),
    [
        (
            "FIND /orders/large min_total?:n limit?:i -> orders[].id orders[].total:n",
            {"min_total": 50},
            {"orders": [{"id": "o2", "total": 80.0}, {"id": "o3", "total": 55.0}]},
        ),
        (
            "FIND /orders/large min_total?:n limit?:i -> orders[].id orders[].total:n",
            {"limit": 1},
            {"orders": [{"id": "o1", "total": 30.0}]},
        ),
        (
            "FIND /orders/recent placed_after:d sort?=total|-total -> orders[].order_id",
            {"placed_after": "2026-01-31", "sort": "total"},
            {"orders": [{"order_id": "o3"}, {"order_id": "o2"}]},
        ),
        (
            "LIST /customers/orders customer_email:e -> orders[].id orders[].product.title",
            {"customer_email": "ada@example.org"},
            {"orders": [{"id": "o1", "product": {"title": "Lamp"}}, {"id": "o3", "product": {"title": "Desk"}}]},
        ),
        (
            "FETCH /orders/{order_id}/customer -> customer.name customer.address.city order_total:n",
            {"order_id": "o2"},
            {"customer": {"name": "Bo", "address": {"city": "Oslo"}}, "order_total": 80.0},
        ),
        (
            "LIST /orders/customers -> orders[].id orders[].customer_name",
            {},
            {
                "orders": [
                    {"id": "o1", "customer_name": "Ada"},
                    {"id": "o2", "customer_name": "Bo"},
                    {"id": "o3", "customer_name": "Ada"},
                ]
            },
        ),
        (
            "!REFUND /orders order_id reason -> refund_id",
            {"order_id": "o3", "reason": "scratched"},
            {"refund_id": "r-o3"},
        ),
    ],
)
def test_a_plan_answers_as_proposed(line: str, sent: dict[str, Any], answer: dict[str, Any]) -> None:
    bench, endpoint = serve(line)
    path = endpoint.path
    for name, value in sent.items():
        path = path.replace(f"{{{name}}}", str(value))
    assert bench.send(endpoint.method, path, sent).json == answer
