"""Files: uploads as inputs of endpoints, downloads as outputs, and the files that agents refer to."""
