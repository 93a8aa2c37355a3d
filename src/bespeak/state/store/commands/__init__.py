"""What can be asked of a store, one module for each kind of thing it keeps."""
