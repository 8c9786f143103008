"""Training of the demo model, from four archives to weights that vLLM serves."""
