"""Black-box checks of a live server, one per item of AGTP-API 13.1."""
