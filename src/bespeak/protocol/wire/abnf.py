"""The grammar of start lines and headers, each pattern beside its production."""

from __future__ import annotations

import re
from typing import Final

PREFIX: Final = b"AGTP/1.0 "  # core 2.1: requests and responses begin with the version

# Core 2.1:  request-line   = "AGTP/1.0" SP method SP request-target CRLF
#            request-target = path-absolute [ "?" query ]
# The target may be missing: worked examples and the reference client write two tokens for "/". The method may be any
# visible ASCII and the target anything without spaces, so that a wrong verb is answered 459 and a wrong path 460.
REQUEST_LINE: Final = re.compile(r"AGTP/1\.0 ([\x21-\x7e]+)(?: ([^\x00-\x20\x7f]+))?")

# Core 2.1:  response-line  = "AGTP/1.0" SP 3DIGIT SP status-text CRLF
#            status-text    = *( VCHAR / SP / HTAB )
STATUS_LINE: Final = re.compile(r"AGTP/1\.0 ([1-9][0-9]{2})(?: ([^\x00-\x08\x0a-\x1f\x7f]*))?")

# RFC 9110 5.1, 5.6.2:  field-name = 1*tchar
FIELD_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")

# RFC 9110 5.5 with UTF-8 in place of obs-text:  field-value = *( VCHAR / SP / HTAB )
FIELD_VALUE: Final = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")

# Every plain header line of a head at once: a name right behind a line end, no tab in the value, CRLF behind it.
# The quantifiers are possessive, so that a line that does not match is given up in one pass.
FIELDS: Final = re.compile(r"(?<=\n)([!#$%&'*+\-.^_`|~0-9A-Za-z]++):[ \t]*+([^\x00-\x1f\x7f]*+)\r\n")

# A character that no line may hold. Lines end with CRLF, or LF alone as hand-typed sessions and the reference
# implementation have it; a CR anywhere else is one of these.
CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
