"""Commands of the store, one module for each kind of data it keeps."""
