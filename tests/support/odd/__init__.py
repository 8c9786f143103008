"""Odd records against a live worker: how they are published, and how their effect is judged."""
