"""The OpenAPI document of the HTTP face, derived from the contract (AGTP-API 14.2)."""
