"""The documents a server signs, and the key."""

from __future__ import annotations

import pytest
from joserfc.jwk import OKPKey

from bespeak.documents.projections.manifest_signature import SIGNATURE_MEMBER
from bespeak.errors import ConfigError
from bespeak.runtime.identity.signer import Signer


def test_the_private_half_of_a_key_signs() -> None:
    key = OKPKey.generate_key("Ed25519")
    signer = Signer(key)
    manifest = {"document_version": "v-1"}
    signer.sign_manifest(manifest)
    assert manifest[SIGNATURE_MEMBER].count(".") == signer.sign(b"{}").count(".") == 2
    assert signer.key_id == key.thumbprint()


def test_the_public_half_of_a_key_signs_nothing() -> None:
    with pytest.raises(ConfigError, match="private"):
        Signer(OKPKey.import_key(OKPKey.generate_key("Ed25519").as_dict(private=False)))
