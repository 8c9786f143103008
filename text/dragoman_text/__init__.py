"""What client and worker must agree on about text: where it is cut, what is kept verbatim."""
