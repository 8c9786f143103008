"""Documents at the gateway: uploaded, translated by runs of the client, downloaded."""
