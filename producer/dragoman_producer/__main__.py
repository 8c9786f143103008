"""How is the command run without its script? As `python -m dragoman_producer`."""

from dragoman_producer.cli import main

if __name__ == "__main__":
    main()
