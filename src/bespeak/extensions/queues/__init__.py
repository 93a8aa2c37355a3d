"""Queues: work that agents submit and functions of the service do, at least once."""
