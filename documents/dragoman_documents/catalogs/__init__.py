"""Catalogs of messages and resources of programs."""
