"""Publisher, short name and description of a service."""

from __future__ import annotations

import pytest
from tests.service import echo, make_endpoint

from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.projections.discovery import describe_service, publisher_of, short_name


def service(server_id: str = "rooms.acme.example", **fields: str) -> Service:
    description = fields.pop("description", "")
    return Service(
        identity=ServerIdentity(server_id=server_id, operator="", contact="", **fields), description=description
    )


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (service(), "rooms.acme.example"),
        (service("agtp://Rooms.Acme.example:4480"), "rooms.acme.example"),
        (service(domain="acme.example"), "acme.example"),
        (service("rooms"), "api.acme.example"),
        (service("10.0.0.7"), "api.acme.example"),
        (service("a b.c/d"), "api.acme.example"),
    ],
)
def test_the_publisher_is_a_domain(made: Service, expected: str) -> None:
    assert publisher_of(made, "https://api.acme.example:8443/rooms") == expected


@pytest.mark.parametrize(("url", "expected"), [("http://127.0.0.1:8080", "127-0-0-1"), ("http://[::1]:80", "1")])
def test_without_a_domain_the_host_stands_for_it(url: str, expected: str) -> None:
    assert publisher_of(service("rooms"), url) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Acme Rooms", "acme-rooms"), ("", "rooms-acme-example"), ("日本", "service"), ("x" * 90, "x" * 60)],
)
def test_a_short_name_has_only_letters_digits_and_hyphens(name: str, expected: str) -> None:
    assert short_name(service(name=name)) == expected


def test_a_description_is_cut_or_made_of_nouns() -> None:
    rooms = [make_endpoint("FIND", "/rooms", echo), make_endpoint("BOOK", "/rooms/{id}", echo)]
    assert describe_service(service(), rooms, 100) == "Operations on rooms"
    assert len(describe_service(service(description="word " * 100), rooms, 100)) <= 100
