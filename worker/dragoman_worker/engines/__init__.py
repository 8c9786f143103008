"""Engines behind the `Engine` port."""
