"""Android's string resources."""
