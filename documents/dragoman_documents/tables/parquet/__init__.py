"""Parquet: columns of text, read and written some rows at a time."""
