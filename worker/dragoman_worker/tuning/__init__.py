"""Which settings fit this machine, this model and these jobs? Measured: tune and bench."""
