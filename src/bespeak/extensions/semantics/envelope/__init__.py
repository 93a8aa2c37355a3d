"""Semantic envelopes: JSON-LD around a call, read and written."""
