"""Liveness checks, periodic stats and the cause that limits throughput."""
