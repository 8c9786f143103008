"""Measurements that choose a worker's settings: `tune`, `bench` and `why`."""
