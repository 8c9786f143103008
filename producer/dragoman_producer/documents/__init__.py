"""Documents: files in, a mirrored folder of translated files out."""
