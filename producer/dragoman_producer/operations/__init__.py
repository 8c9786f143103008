"""Which tasks keep an installation in order? Topics today; each is a module of its own."""
