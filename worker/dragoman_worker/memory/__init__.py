"""The translation memory: its key, and the coalescing of equal items in flight."""
