"""Load generator, harness and results of `tune` and `bench`."""
