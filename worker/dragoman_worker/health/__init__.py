"""Liveness checks, periodic readings and the cause that limits throughput."""
