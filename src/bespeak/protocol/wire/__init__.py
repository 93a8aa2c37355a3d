"""Sans-IO AGTP: bytes in, messages out; no sockets, no asyncio, no clock."""
