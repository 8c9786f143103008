"""How is the demonstration translation model made, from four archives to served weights?"""
