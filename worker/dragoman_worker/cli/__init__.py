"""The commands of `dragoman-worker`, one module each."""
