"""Commands of `dragoman-worker`, one module per command.

Modules with heavy imports are imported when a command runs, so that `--help` stays fast.
"""
