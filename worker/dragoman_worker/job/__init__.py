"""One job from its record to its outcome."""
