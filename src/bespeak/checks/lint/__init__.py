"""Lint rules for contracts. A server registers an endpoint only if it breaks no normative rule."""
