"""Contracts written as Python functions."""
