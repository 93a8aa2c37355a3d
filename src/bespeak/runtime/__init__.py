"""Answering calls: gates, dispatcher, bindings, built-in methods. faces and app may import it."""
