"""Compositions: endpoints that call other endpoints by a recipe (AGTP-API 12.1)."""
