"""Delivery: what a server sends of its own accord, through the outbox, to addresses outside."""
