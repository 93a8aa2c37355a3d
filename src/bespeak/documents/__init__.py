"""Files and published formats: text to model and back. Checks, runtime, faces, agent and app import it."""
