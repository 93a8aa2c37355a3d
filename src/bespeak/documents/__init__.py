"""Files and published forms: text to model and back. The rooms that judge, answer and call may import it."""
