"""The supervisor, its child processes, and what a replica process needs of its parent."""
