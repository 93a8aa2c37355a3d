"""Negotiation of endpoints that do not exist yet: proposals, plans, syntheses (AGTP-API 10)."""
