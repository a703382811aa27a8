"""One module per format: how the bytes of a key or a value become a value of its type, and what is wrong with them."""
