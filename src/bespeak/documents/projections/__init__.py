"""One contract, many faces; each is a pure function from the model to a document."""
