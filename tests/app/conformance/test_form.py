from __future__ import annotations

from bespeak.app.conformance.subject import FORMS, Form


def test_only_an_object_is_put_into_the_envelope() -> None:
    wrapped = Form(wrapped=True)
    assert wrapped.write({"a": 1}) == {"parameters": {"a": 1}}
    assert (wrapped.write([]), wrapped.write(None), Form().write({"a": 1})) == ([], None, {"a": 1})


def test_the_form_of_the_drafts_is_tried_first() -> None:
    assert FORMS[0] == Form(wrapped=False, media="application/vnd.agtp+json")
    assert len(set(FORMS)) == len(FORMS)
