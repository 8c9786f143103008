"""How much work is in flight, and which item enters the engine next."""
