"""Checks the documents against the code: the words that modules are named by, the rooms, the names, paths,
links, command lines and the version in the documents, and that every name in them has an owner.
"""

import sys

from docs.tools import command_lines, owned_names, references, version, vocabulary
from docs.tools.rooms import check_rooms


def main() -> int:
    """Print what is wrong; the exit code."""
    faults = [
        *vocabulary.find_faults(),
        *references.find_faults(),
        *command_lines.find_faults(),
        *version.find_faults(),
        *owned_names.find_faults(),
        *check_rooms(vocabulary.GLOSSARY.read_text(), vocabulary.SOURCES),
    ]
    sys.stderr.writelines(f"{fault}\n" for fault in faults)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
