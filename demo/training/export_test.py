"""Export of held-out pairs to test.jsonl, for pipelines without the archives.

python -m demo.training.export_test --data DIR --out demo/training/test.jsonl
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .corpus import write_examples
from .scores import held_out


def main() -> None:
    """Write the first examples of each direction of the test set, one JSON object per line."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the four archives")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--each", type=int, default=250, help="examples per direction")
    given = parser.parse_args()
    write_examples(held_out(given.data, "test", given.each), given.out)


if __name__ == "__main__":
    main()
