"""Entry point of `python -m dragoman_producer`, the same as the `dragoman` command."""

from dragoman_producer.cli import main

if __name__ == "__main__":
    main()
