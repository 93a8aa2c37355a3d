"""Invariant: no text makes the reader of tokens raise, and what it accepts has one reading and one text.

An accepted token is written again from its parts byte by byte, its header and payload mean the same to a second JSON
reader that refuses repeated members, and it has no extension.

Run `python tools/fuzz/jws.py --seconds 60`. It prints how many texts it tried, or the one that broke the invariant.
"""

from __future__ import annotations

import base64
import json
import random
import sys
from typing import Any

import msgspec
from campaign import campaign

from bespeak.protocol.exchange.header_values import encode64
from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.identity.jws import Jws, parse_jws

_LONGEST = 4096
_MEMBERS = [
    '"alg":"EdDSA"',
    '"alg":"Ed25519"',
    '"alg":"none"',
    '"\\u0061lg":"EdDSA"',
    '"kid":"k"',
    '"kid":7',
    '"typ":"JWT"',
    '"typ":null',
    '"crit":null',
    '"crit":["exp"]',
    '"b64":false',
    '"x":{"y":1,"y":1}',
    '"x":[{"y":1},{"y":"\\":"}]',
    '"x":"\ud800"',
    '"":0',
]
_NOISE = ["", ".", "..", "=", " ", "\n", "A", "_", "+", "/", "é", "\x00", "\ud800", "e30", "bnVsbA"]
_ANYTHING = msgspec.json.Decoder(Any)


def random_object(source: random.Random) -> bytes:
    """Return an object, or something close to one."""
    text = "{" + ",".join(source.choices(_MEMBERS, k=source.randrange(5))) + "}"
    if source.random() < 0.1:
        text = source.choice(["[]", "null", "", text + text, "\ufeff" + text, "[" * 500])
    return text.encode(errors="surrogatepass")


def random_token(source: random.Random) -> str:
    """Return a token, or something close to one."""
    parts = [encode64(random_object(source)).decode(), encode64(random_object(source)).decode(), "A" * 86]
    text = ".".join(parts)
    if source.random() < 0.5:
        at = source.randrange(len(text) + 1)
        text = text[:at] + source.choice(_NOISE) + text[at + source.randrange(3) :]
    return text * source.choice([1, 1, 1, 1, 40])


def refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of members, none of which is there twice."""
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)


def trial(source: random.Random, noted: list[object]) -> None:
    """Try a hundred texts."""
    for _ in range(100):
        text = random_token(source)
        noted[:] = [text]
        read = parse_jws(text, longest=_LONGEST)
        if isinstance(read, Fault):
            continue
        assert isinstance(read, Jws)
        assert len(text) <= _LONGEST
        assert ".".join(read.parts) == text
        assert json.loads(_decode(read.protected), object_pairs_hook=refuse_repeated) == read.header
        assert not {"crit", "b64"} & set(read.header)
        payload = read.read_payload(_ANYTHING)
        if not isinstance(payload, Fault):
            assert json.loads(read.payload, object_pairs_hook=refuse_repeated) == payload


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


if __name__ == "__main__":
    sys.exit(campaign(__doc__, trial))
