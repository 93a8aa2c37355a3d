"""NORMALIZE (Tier 2 4.6): canonical forms, and reasons where there is none."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.extensions.acquire.test_collections import manifest
from tests.extensions.acquire.test_methods import code, good
from tests.stateful import keeping

from bespeak.extensions.compute import normalize as module
from bespeak.extensions.compute.normalize import KINDS, normalize_values

pytestmark = pytest.mark.anyio
SERVICE = {"methods": ("NORMALIZE",)}
CASES: list[tuple[str, str | None, str, str | None]] = [
    ("date", None, "2026-03-04", "2026-03-04"),
    ("date", None, "2026-W14-5", "2026-04-03"),
    ("date", None, "2026-03-04T10:00:00+02:00", "2026-03-04T10:00:00+02:00"),
    ("date", None, "March 4, 2026", "2026-03-04"),
    ("date", None, "31/12/2026", "2026-12-31"),
    ("date", None, "03/04/2026", None),
    ("date", "en", "03/04/2026", None),
    ("date", "en-US", "03/04/2026", "2026-03-04"),
    ("date", "en-GB", "03/04/2026", "2026-04-03"),
    ("date", "de-DE", "3. März 2026", "2026-03-03"),
    ("date", "de-DE", "03.04.2026 14:30", "2026-04-03T14:30:00"),
    ("date", "ja-JP", "2026年3月4日", "2026-03-04"),
    ("date", "en-US", "03/04/26", None),
    ("date", None, "12", None),
    ("date", None, "May", None),
    ("date", None, "yesterday", None),
    ("date", None, "30 February 2026", None),
    ("date", "en-US", "March 4 2026 10am CST", None),
    ("phone", None, "+49 30 901820", "+4930901820"),
    ("phone", "de-DE", "030 901820", "+4930901820"),
    ("phone", "de", "030 901820", None),
    ("phone", "en-US", "(212) 555-0123 ext. 7", "+12125550123"),
    ("phone", "en-US", "12", None),
    ("currency", None, "€ 1.234,50", "1234.50 EUR"),
    ("currency", None, "1,234.5 usd", "1234.50 USD"),
    ("currency", None, "1,234 EUR", None),
    ("currency", "de-DE", "1,234 EUR", "1.234 EUR"),
    ("currency", "en-US", "1,234 EUR", "1234.00 EUR"),
    ("currency", "en-US", "($12.50)", "-12.50 USD"),
    ("currency", "en-CA", "-$5", "-5.00 CAD"),
    ("currency", "en-US", "1.234,50 $", None),
    ("currency", None, "$5", None),
    ("currency", "en", "£5", None),
    ("currency", "de-CH", "CHF 1'234.50", "1234.50 CHF"),
    ("currency", "fr-FR", "1 234,50 €", "1234.50 EUR"),
    ("currency", "ja-JP", "JPY 500", "500 JPY"),
    ("currency", None, "free", None),
    ("currency", None, "12.50", None),
    ("currency", None, "--5 EUR", None),
    ("unit", None, "3,5 km", "3500 m"),
    ("unit", None, "3,500 km", None),
    ("unit", "de-DE", "3,500 km", "3500 m"),
    ("unit", "en-US", "3,500 km", "3500000 m"),
    ("unit", None, "5 ft 11 in", "1.8034 m"),
    ("unit", None, "-40 °F", "233.15 K"),
    ("unit", None, "36 km/h", "10 m/s"),
    ("unit", "en-GB", "1 pint", "0.00056826125 m³"),
    ("unit", "en-US", "2 pt", "0.000946352946 m³"),
    ("unit", None, "1 pint", None),
    ("unit", None, "2 tons", None),
    ("unit", None, "5 moons", None),
    ("unit", None, "5 ft 3 kg", None),
    ("unit", None, "5", None),
    ("address", None, " 10  Downing Street,\nLondon ,  UK", "10 Downing Street, London, GB"),
    ("address", "de-DE", "Unter den Linden 1, Berlin, Deutschland", "Unter den Linden 1, Berlin, DE"),
    ("address", None, "Peachtree St 1, Atlanta, Georgia", "Peachtree St 1, Atlanta, Georgia"),
    ("address", None, "1 Main St, Fresno, CA", "1 Main St, Fresno, CA"),
]


@pytest.mark.requirement("METHODS-4.6-1", "METHODS-4.6-2", "METHODS-4.6-3", "METHODS-4.6-4")
async def test_values_get_their_canonical_form_or_the_reason_why_they_have_none() -> None:
    async with keeping(**SERVICE) as bench:
        wrong = []
        for kind, locale, value, canonical in CASES:
            more = {"locale": locale} if locale else {}
            found = await good(bench, "NORMALIZE", data=value, type=kind, **more)
            [one] = found["results"]
            assert (one["original"], found["count"]) == (value, 1)
            assert ("error" in one, found["failed"]) == (one.get("canonical") is None, int("error" in one))
            if one.get("canonical") != canonical:
                wrong.append((kind, locale, value, one))
        assert wrong == []


async def test_rows_keep_what_cannot_be_read_and_collections_need_the_authority_of_the_caller(tmp_path: Path) -> None:
    async with keeping(**SERVICE, data_manifest=manifest(tmp_path, sensitivity="high")) as bench:
        rows = [{"id": 1, "born": "4 March 2026"}, {"id": 2, "born": "soon"}, {"id": 3}]
        found = await good(bench, "NORMALIZE", data=rows, type="date", fields=["born"])
        assert found["rows"] == [{"id": 1, "born": "2026-03-04"}, {"id": 2, "born": "soon"}, {"id": 3}]
        assert [(one["row"], one["field"]) for one in found["results"]] == [(0, "born"), (1, "born")]
        assert found["failed"] == 1
        source: dict[str, Any] = {"data": {"collection": "ledger"}, "type": "date", "fields": ["id"]}
        assert await code(bench, "NORMALIZE", **source) == (404, "collection-not-found")
        assert (await good(bench, "NORMALIZE", **source, authority="data:ledger"))["failed"] > 0
        for data in ("x", [1], {}, {"a": 1}, {"collection": 7}, {"collection": "ledger", "filter": 3}):
            assert await code(bench, "NORMALIZE", data=data, type="date", fields=["a"]) == (422, "invalid-data"), data


async def test_lists_addresses_in_parts_and_wrong_locales() -> None:
    async with keeping(**SERVICE) as bench:
        found = await good(bench, "NORMALIZE", data=["2026-03-04", 7, None, "", "x" * 600], type="date")
        assert ([("canonical" in one) for one in found["results"]], found["failed"]) == ([True] + [False] * 4, 4)
        [one] = (await good(bench, "NORMALIZE", data={"city": " Paris ", "country": "France"}, type="address"))[
            "results"
        ]
        assert one["canonical"] == {"city": "Paris", "country": "FR"}
        assert "country" not in (await good(bench, "NORMALIZE", data="1 Main St, CA", type="address"))["results"][0]
        [one] = (await good(bench, "NORMALIZE", data={"country": "CA"}, type="address"))["results"]
        assert one["canonical"] == {"country": "CA"}
        [one] = (await good(bench, "NORMALIZE", data={"country": "Narnia"}, type="address"))["results"]
        assert "error" in one
        for locale in ("xx-YY", "tlh", "de_XX_QQ_11"):
            assert await code(bench, "NORMALIZE", data="1", type="date", locale=locale) == (422, "invalid-locale"), (
                locale
            )
        assert (await code(bench, "NORMALIZE", data="1", type="colour"))[0] == 422
        assert await code(bench, "NORMALIZE", data=["1"] * 5001, type="date") == (422, "invalid-data")


async def test_a_server_without_the_libraries_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LIBRARIES", ("a_library_that_is_not_there",))
    async with keeping(**SERVICE) as bench:
        assert await code(bench, "NORMALIZE", data="1", type="date") == (503, "not-available")


VALUES = st.text(max_size=20) | st.lists(
    st.sampled_from([*"0123456789.,-+/:() '’", "€", "$", "EUR", "kg", "m", "°C", "^2", "May", "2026", "UTC", "T", "Z"]),
    max_size=10,
).map("".join)


@given(VALUES, st.sampled_from(list(KINDS)), st.sampled_from([None, "en", "en-US", "de-CH", "fr-FR"]))
def test_any_text_has_a_canonical_form_or_a_reason(value: str, kind: str, locale: str | None) -> None:
    [one] = normalize_values(kind, [value], locale)
    assert ("canonical" in one) != ("error" in one)


@given(st.datetimes(min_value=datetime(1000, 1, 1)), st.sampled_from(["date", "unit", "currency"]))
def test_a_canonical_form_is_its_own_canonical_form(moment: datetime, kind: str) -> None:
    text = {"date": moment.isoformat(), "unit": f"{moment.second}.{moment.minute} km", "currency": f"{moment.hour} EUR"}
    [one] = normalize_values(kind, [text[kind]], "en-US")
    assert normalize_values(kind, [one["canonical"]], "en-US")[0]["canonical"] == one["canonical"]
