"""Everything that changes vLLM: `table.py` lists it, `engine.patches` switches it off.

Each module changes vLLM for one reason. `names.py` looks for the names that a change needs in the
installed vLLM's source before anything is imported: a change whose names are missing is left out.
"""
