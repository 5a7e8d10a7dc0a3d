"""`python -m culpa_lab.construct --out DIR` writes the shipped model's files."""

import argparse
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files and say where."""
    parser = argparse.ArgumentParser(
        prog="python -m culpa_lab.construct", description="Write the reference model: weights made by hand."
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder, made if it is not there"
    )
    folder: Path = parser.parse_args(arguments).out
    from culpa_lab.construct.assemble import build

    try:
        build(folder)
    except OSError as error:
        parser.error(f"can't write to {folder}: {error.strerror}")
    print(f"wrote {', '.join(sorted(path.name for path in folder.iterdir()))} to {folder}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
