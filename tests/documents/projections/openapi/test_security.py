"""Security schemes, and the requirements of each operation."""

from __future__ import annotations

import pytest
from tests.service import echo, make_endpoint

from bespeak.contract.policy import Policies
from bespeak.documents.projections.openapi.document import security_of, security_schemes
from bespeak.documents.projections.openapi.responses import Circumstances
from bespeak.state.identity.settings import MODES


def test_open_mode_has_no_security_schemes() -> None:
    served = Circumstances(modes=("open",), policies=Policies())
    assert security_schemes(("open",)) == {}
    assert security_of(make_endpoint("BOOK", "/room", echo, scopes=("room:book",)), served) == []


@pytest.mark.parametrize("mode", MODES[1:])
def test_every_mode_with_proof_has_a_scheme(mode: str) -> None:
    (scheme,) = security_schemes((mode,)).values()
    expected = {"token": "http", "mtls": "mutualTLS", "signed": "apiKey"}
    assert scheme["type"] == expected[mode]


@pytest.mark.parametrize(
    ("scopes", "always", "asked"),
    [
        (("room:book",), False, [{"Bearer": ["room:book"]}, {"ClientCertificate": ["room:book"]}]),
        ((), True, [{"Bearer": []}, {"ClientCertificate": []}]),
        ((), False, [{}, {"Bearer": []}, {"ClientCertificate": []}]),
    ],
)
def test_one_of_several_proofs_is_enough_and_none_if_optional(
    scopes: tuple[str, ...], always: bool, asked: list[dict[str, list[str]]]
) -> None:
    served = Circumstances(modes=("token", "mtls"), policies=Policies(scope_required_for_invocation=always))
    assert security_of(make_endpoint("BOOK", "/room", echo, scopes=scopes), served) == asked
