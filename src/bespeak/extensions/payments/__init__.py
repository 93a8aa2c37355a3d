"""Payments: purchases as durable records, and those who move their money."""
