"""Apple's string catalogs and `.strings` files."""
