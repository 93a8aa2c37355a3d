"""Styles of values, and the `encoding` of the fields of a form or a multipart body."""

from __future__ import annotations

from typing import Final

from bespeak.documents.openapi.description import Encoding
from bespeak.documents.openapi.notices import Notices
from bespeak.documents.openapi.rules import NOT_IMPORTED, UNCLEAR_BODY, UNCLEAR_PARAMETER
from bespeak.documents.openapi.spot import Spot
from bespeak.protocol.exchange.media_type import is_media_type
from bespeak.text.diagnostics.brief import brief

FORM_STYLES: Final = ("form", "spaceDelimited", "pipeDelimited", "deepObject")
"""Styles of a query parameter and of a field of a form, the default first."""

_STYLING: Final = ("style", "explode", "allowReserved")


def read_style(spot: Spot, styles: tuple[str, ...], place: str, notices: Notices) -> tuple[str, bool]:
    """Return the style of a value, and True if it is exploded. `styles` lists the allowed ones, the default first."""
    style = spot.text("style") or styles[0]
    if style not in styles:
        message = f"the style {brief(style)} is not allowed for a {place}; {styles[0]} is used"
        notices.warning(UNCLEAR_PARAMETER, message, spot.below("style"))
        style = styles[0]
    explode = spot.flag("explode")
    return style, explode if explode is not None else style in {"form", "deepObject"}


def read_encodings(media_type: Spot, notices: Notices) -> dict[str, Encoding]:
    """Read the encodings of the fields of a body, by name."""
    listed = media_type.below("encoding")
    if listed.value is None:
        return {}
    if not isinstance(listed.value, dict):
        notices.warning(UNCLEAR_BODY, f"`encoding` is {brief(listed.value)}, not an object; it is ignored", listed)
        return {}
    return {name: _encoding(listed.below(name), notices) for name in listed.value}


def _encoding(spot: Spot, notices: Notices) -> Encoding:
    if not isinstance(spot.value, dict):
        notices.warning(UNCLEAR_BODY, f"an encoding is {brief(spot.value)}, not an object; it is ignored", spot)
        return Encoding()
    if spot.value.get("headers"):
        notices.info(NOT_IMPORTED, "the headers of a part of a body are not sent", spot.below("headers"))
    style, explode = "", True
    if any(key in spot.value for key in _STYLING):
        # One of these keys makes `contentType` meaningless (OpenAPI 3.1.1, 4.8.15.1.2), except for files.
        style, explode = read_style(spot, FORM_STYLES, "field of a form", notices)
    named = [name.strip() for name in spot.text("contentType").split(",")]
    types = [name for name in named if is_media_type(name.replace("*", "x"))]
    return Encoding(
        style=style,
        explode=explode,
        reserved=bool(spot.flag("allowReserved")),
        content_types=tuple(sorted(types, key=lambda name: "*" in name)),
    )
