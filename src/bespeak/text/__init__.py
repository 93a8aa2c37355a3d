"""Text: trees with places, findings and their rules, English. Every room may import it; it imports none."""
