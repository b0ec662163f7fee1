"""Checks the documents against the code: the rooms, the names, paths, links, command lines and the version in
them, that every name has an owner, and that public names are unique.
"""

import sys

from docs.tools import command_lines, owned_names, references, unique_names, version
from docs.tools.house.tree import read_checkout
from docs.tools.rooms import PACKAGES, PAGE, check_rooms


def main() -> int:
    """Print what is wrong; the exit code."""
    faults = [
        *references.find_faults(),
        *command_lines.find_faults(),
        *version.find_faults(),
        *owned_names.find_faults(),
        *unique_names.find_faults(read_checkout(references.ROOT)),
        *check_rooms(PAGE.read_text(), PACKAGES),
    ]
    sys.stderr.writelines(f"{fault}\n" for fault in faults)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
