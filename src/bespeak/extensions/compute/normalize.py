"""NORMALIZE: values in one canonical form (Tier 2 4.6). What has two meanings without a locale is an error."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.data.collection import read_rows
from bespeak.runtime.answer import Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.concurrency import compute_in_thread
from bespeak.runtime.handling import handler, invalid, refusal
from bespeak.text.values.numbers import SHARED_SIGNS
from bespeak.text.values.written_dates import parse_date

if TYPE_CHECKING:
    from babel import Locale

_NORMALIZE = STANDARD["NORMALIZE"]
_MOST_VALUES: Final = 5000
_LONGEST: Final = 500  # characters of a value
_LIBRARIES: Final = ("babel", "dateparser", "phonenumbers", "pint")
_OFFSET: Final = re.compile(r"[-+−][0-9]{1,2}:?[0-9]{2}\b|Z\b|\bUTC\b|\bGMT\b")
_NUMBER: Final = r"[0-9](?:[0-9.,'’\xa0\u202f ]*[0-9])?"
_AMOUNT: Final = re.compile(rf"([^0-9]*?)({_NUMBER})([^0-9]*)")
_FACTOR: Final = r"[A-Za-zµμΩÅ°%_]+(?:[²³]|\^[1-3])?"
_QUANTITY: Final = re.compile(rf"([-+−]?)({_NUMBER})\s*({_FACTOR}(?:[/*·]{_FACTOR}){{0,3}})(?:,?\s+|\Z)")
_TWO_SYSTEMS: Final = re.compile(r"(?:(gal)(?:lons?)?|(p)(?:in)?ts?|(q)(?:uar)?ts?|(fl)_?oz|(fl)uid_ounces?|(c)ups?)")
_IMPERIAL: Final = {"gal": "gallon", "p": "pint", "q": "quart", "fl": "fluid_ounce", "c": "cup"}
_COUNTRIES: Final = {"uk": "GB", "great britain": "GB", "england": "GB", "usa": "US", "holland": "NL", "georgia": ""}
Found = dict[str, Any]  # members of a result: `canonical` and what belongs to it


class _Unreadable(Exception):
    """A value that cannot be read, with the reason."""


@handler
async def normalize(call: RoutedCall) -> Envelope:
    """Answer NORMALIZE /. A value that cannot be read is reported, and stays as it is in rows."""
    data, fields, kind = call.input["data"], call.input.get("fields"), call.input["type"]
    if not is_available():
        message = "NORMALIZE needs libraries that are not installed: pip install 'bespeak[normalize]'."
        raise refusal(_NORMALIZE, "not-available", message)
    rows: list[dict[str, Any]] = []
    if fields is None:
        values = data if isinstance(data, list) else [data]
        places: list[dict[str, Any]] = [{} for _ in values]
    else:
        named = isinstance(data, Mapping) and isinstance(data.get("collection"), str)
        listed = isinstance(data, list) and all(isinstance(row, Mapping) for row in data)
        if not listed and not (named and isinstance(data.get("filter", {}), Mapping)):
            raise invalid("data", 'must be rows, or {"collection": ...}, if there are `fields`.')
        rows = [dict(row) for row in await read_rows(call, _NORMALIZE, data, "data", most=_MOST_VALUES)]
        places = [{"row": number, "field": name} for number, row in enumerate(rows) for name in fields if name in row]
        values = [rows[place["row"]][place["field"]] for place in places]
    if len(values) > _MOST_VALUES:
        raise invalid("data", f"must have at most {_MOST_VALUES:,} values; got {len(values):,}.")
    found = await compute_in_thread(call.agent_id, normalize_values, kind, values, call.input.get("locale"))
    for place, one in zip(places, found, strict=True):
        if rows and "canonical" in one:
            rows[place["row"]][place["field"]] = one["canonical"]
    results = [{**place, "original": value, **one} for place, value, one in zip(places, values, found, strict=True)]
    told = {"results": results, "count": len(results), "failed": sum("error" in one for one in found)}
    told |= {"rows": rows} if fields is not None else {}
    return Envelope({**told, "method": KINDS[kind][1]})


def is_available() -> bool:
    """Return True if the libraries are installed."""
    return all(importlib.util.find_spec(name) is not None for name in _LIBRARIES)


def normalize_values(kind: str, values: Sequence[Any], tag: str | None) -> list[Found]:
    from babel import Locale, UnknownLocaleError  # noqa: PLC0415 - large

    try:
        locale = None if tag is None else Locale.parse(tag.replace("-", "_"))
    except (UnknownLocaleError, ValueError):
        raise invalid("locale", f"is {tag!r}, which is not a known locale such as de-CH.") from None
    known: dict[str, Found] = {}
    results: list[Found] = []
    for value in values:
        key = repr(value)
        if key not in known:
            try:
                if not (isinstance(value, str) or (kind == "address" and isinstance(value, Mapping))):
                    raise _Unreadable("it is not a text")
                if not value or len(key) > _LONGEST:
                    raise _Unreadable(f"it is empty or has more than {_LONGEST} characters")
                known[key] = KINDS[kind][0](value, locale)
            except _Unreadable as reason:
                known[key] = {"error": str(reason)}
        results.append(known[key])
    return results


def _read_date(value: str, locale: Locale | None) -> Found:
    text = value.strip()
    for read in (date.fromisoformat, datetime.fromisoformat):
        with suppress(ValueError):
            return {"canonical": read(text).isoformat()}
    found = {_parse_date(text, locale.language if locale else "en", order) for order in _date_orders(locale)}
    if len(found) > 1:
        raise _Unreadable("day and month can be swapped; give a locale with its region")
    [moment] = found
    if moment is None:
        raise _Unreadable("it is not a date with day, month and year" + ("" if locale else " in English or ISO 8601"))
    if moment[:4] not in {f"{int(digits):04}" for digits in re.findall(r"\d{4}", text)}:
        raise _Unreadable("its year does not have four digits")
    if re.search(r"[-+]\d\d:\d\d$", moment) and not _OFFSET.search(text):
        raise _Unreadable("names of time zones have several meanings; write the offset, such as +01:00")
    return {"canonical": moment}


def _date_orders(locale: Locale | None) -> Sequence[str]:
    if locale is None or (locale.language == "en" and locale.territory is None):
        return "DMY", "MDY"
    pattern = locale.date_formats["short"].pattern.upper()
    return ("".join(sorted("DMY", key=pattern.find)),)


def _parse_date(text: str, language: str, order: str) -> str | None:
    try:
        found = parse_date(text, (language,), order)
    except ValueError:
        raise invalid("locale", f"has the language {language!r}, in which dates cannot be read.") from None
    return found and (found[0].isoformat() if found[1] else found[0].date().isoformat())


def _read_phone(value: str, locale: Locale | None) -> Found:
    import phonenumbers  # noqa: PLC0415 - large

    region = locale.territory if locale else None
    try:
        number = phonenumbers.parse(value, region)
    except phonenumbers.NumberParseException as error:
        national = error.error_type == phonenumbers.NumberParseException.INVALID_COUNTRY_CODE and not region
        advice = "it has no country code; give a locale with a region, such as de-DE"
        raise _Unreadable(advice if national else "it is not a phone number") from None
    if not phonenumbers.is_valid_number(number):
        raise _Unreadable("no such number is assigned in the plan of its country")
    told = {"canonical": phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)}
    return {**told, "extension": number.extension} if number.extension else told


def _read_number(text: str, locale: Locale | None) -> Decimal:
    """Read digits with separators. Without a locale they must mean the same in English, German and French."""
    from babel.numbers import NumberFormatError, get_group_symbol, parse_decimal  # noqa: PLC0415 - large

    found: set[Decimal] = set()
    for one in (locale,) if locale else ("en", "de", "fr"):
        mark = get_group_symbol(one)
        written = re.sub(r"[\xa0\u202f ]", mark, text) if mark.isspace() else text
        with suppress(NumberFormatError):
            found.add(parse_decimal(written.replace("'", "’") if mark == "’" else written, one, strict=True))
    if len(found) > 1:
        raise _Unreadable(f"{text!r} has several meanings; give a locale")
    if not found:
        raise _Unreadable(f"{text!r} is not a number" + (f" in the locale {locale}" if locale else ""))
    return found.pop()


def _read_currency(value: str, locale: Locale | None) -> Found:
    from babel import Locale as Known  # noqa: PLC0415 - large
    from babel.numbers import get_currency_precision, list_currencies  # noqa: PLC0415 - large

    text = value.strip()
    bracketed = text.startswith("(") and text.endswith(")")
    parts = _AMOUNT.fullmatch(text[1:-1] if bracketed else text)
    if parts is None:
        raise _Unreadable("it does not have exactly one number")
    sign, signs = re.subn("[-−]", "", f"{parts[1]} {parts[3]}")
    sign = sign.replace("+", "").strip()
    if signs + bracketed > 1 or not sign:
        raise _Unreadable("it has several minus signs" if sign else "it does not name a currency")
    region = locale is not None and locale.territory is not None
    if sign.lower() in SHARED_SIGNS and not region:
        raise _Unreadable(f"{sign!r} is the sign of several currencies; give a locale with its region")
    codes = {sign.upper()} & list_currencies()
    codes = codes or {code for code, one in (locale or Known("en")).currency_symbols.items() if one == sign}
    if len(codes) != 1:
        raise _Unreadable(f"{sign[:40]!r} is not the code or sign of one currency")
    [code] = codes
    amount = _read_number(parts[2], locale)
    places = max(get_currency_precision(code), -int(amount.as_tuple().exponent))
    written = f"{-amount if signs or bracketed else amount:.{places}f}"
    return {"canonical": f"{written} {code}", "amount": written, "currency": code}


@lru_cache(maxsize=32)
def _units() -> Any:
    import pint  # noqa: PLC0415 - slow to import

    return pint.UnitRegistry(non_int_type=Decimal, autoconvert_offset_to_baseunit=True)  # one for the process


def _read_unit(value: str, locale: Locale | None) -> Found:
    text, at, total = value.strip(), 0, None
    while at < len(text):
        part = _QUANTITY.match(text, at)
        if part is None:
            raise _Unreadable("it is not a number with a unit")
        number = _read_number(part[2], locale) * (-1 if part[1] in {"-", "−"} and part[1] else 1)
        one = _to_base(number, part[3], locale)
        if total is not None and (total.units != one.units or part[1] or "kelvin" in str(one.units)):
            raise _Unreadable("its parts cannot be added")
        total, at = one if total is None else total + one, part.end()
    if total is None:
        raise _Unreadable("it is empty")
    written = f"{Context(prec=15).plus(total.magnitude).normalize():f}"
    unit = f"{total.units:~P}"
    return {"canonical": f"{written} {unit}".strip(), "magnitude": written, "unit": unit}


def _to_base(number: Decimal, unit: str, locale: Locale | None) -> Any:
    region = locale.territory if locale else None
    double = _TWO_SYSTEMS.fullmatch(unit)
    if unit.lower() in {"ton", "tons"} or (double is not None and region not in {"GB", "US"}):
        raise _Unreadable(f"{unit!r} has other sizes in the United Kingdom and the United States")
    if double is not None:
        unit = ("imperial_" if region == "GB" else "") + _IMPERIAL[str(double[double.lastindex or 0])]
    registry = _units()
    try:
        return registry.Quantity(number, registry.parse_units(unit.replace("·", "*"))).to_base_units()
    except (ValueError, TypeError, AttributeError, ArithmeticError, InvalidOperation, SyntaxError):
        raise _Unreadable(f"{unit!r} is not a unit") from None  # errors of the library are some of these


def _read_address(value: str | Mapping[str, Any], locale: Locale | None) -> Found:
    """Tidy white space and name the country by its code. No library splits streets honestly, so nothing else."""
    if isinstance(value, Mapping):
        tidy = {name: " ".join(part.split()) if isinstance(part, str) else part for name, part in value.items()}
        code = _country(tidy["country"], locale, coded=True) if isinstance(tidy.get("country"), str) else None
        if code is None and "country" in tidy:
            raise _Unreadable("its country is not a name or code of one country")
        return {"canonical": {**tidy, "country": code} if code else tidy}
    lines = [" ".join(part.split()) for part in re.split(r"[,\n]", value) if part.strip()]
    code = _country(lines[-1], locale) if len(lines) > 1 else None
    told = {"lines": lines[:-1], "country": code} if code else {"lines": lines}
    return {"canonical": ", ".join([*told["lines"], code] if code else lines), **told}


def _country(name: str, locale: Locale | None, *, coded: bool = False) -> str | None:
    """Find a country by its name, or by its code if one is `coded`: a text may end with CA for California."""
    known = _country_names("en") | _country_names(locale.language if locale else "en") | _COUNTRIES
    return known.get(name.lower()) or (name if coded and name in known.values() else None) or None


@lru_cache(maxsize=32)
def _country_names(language: str) -> dict[str, str]:
    from babel import Locale  # noqa: PLC0415 - large

    names = Locale(language).territories
    return {
        name.lower(): code for code, name in names.items() if code.isalpha() and code not in {"EU", "EZ", "UN", "ZZ"}
    }


KINDS: Final[Mapping[str, tuple[Callable[[Any, Locale | None], Found], str]]] = {
    "date": (_read_date, "ISO 8601"),
    "phone": (_read_phone, "E.164"),
    "currency": (_read_currency, "decimal amount and ISO 4217 code"),
    "unit": (_read_unit, "SI base units"),
    "address": (_read_address, "white space and ISO 3166 code of the country; streets and places are not checked"),
}
