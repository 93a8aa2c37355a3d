"""Monitors: what agents have asked to be told of, looked at when it changes or again and again."""
