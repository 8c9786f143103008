"""HTML and XHTML."""
