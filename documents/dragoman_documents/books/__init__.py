"""Books: EPUB."""
