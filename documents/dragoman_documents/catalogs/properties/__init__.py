"""Files of keys and values: `.properties` and `.strings`."""
