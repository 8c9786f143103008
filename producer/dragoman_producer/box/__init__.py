"""One box: an embedded broker, Redis and a worker on one host (`dragoman up`)."""
