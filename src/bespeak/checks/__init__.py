"""Judgement: lint by pass, and changes between contracts. runtime, agent and app may import it."""
