"""The checks by subject; `run` puts them in the order of AGTP-API 13.1."""
