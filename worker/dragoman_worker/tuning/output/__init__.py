"""Tables, reports, plots and the settings file that `tune` and `bench` write."""
