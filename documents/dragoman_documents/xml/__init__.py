"""XML files: elements with the bytes that each one occupies, and texts spliced between them."""
