"""unicodegen.py > chat/unicode_table.h: which code points are letters, numbers and white space.

The tables follow Unicode 15.1 (Python 3.13), which is what llama.cpp splits text by; another version
would cut new scripts into other tokens. Python's own unicodedata is the source.
"""

import sys
import unicodedata

WANTED = "15.1.0"
# Python also calls the separators 1C to 1F white space; Unicode's property White_Space does not.
SPACES = [c for c in range(0x110000) if chr(c).isspace() and not 0x1C <= c <= 0x1F]


def ranges(members):
    found = []
    for c in members:
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def table(name, members):
    print(f"static const uint32_t {name}[][2] = {{")
    cells = [f"{{0x{a:X}, 0x{b:X}}}," for a, b in ranges(members)]
    line = "   "
    for cell in cells:
        if len(line) + 1 + len(cell) > 100:
            print(line)
            line = "   "
        line += " " + cell
    print(line)
    print("};")


def main():
    if unicodedata.unidata_version != WANTED:
        sys.exit(f"this Python has Unicode {unicodedata.unidata_version}; {WANTED} is wanted (Python 3.13)")
    print(f"/* generated from Unicode {WANTED} by tools/unicodegen.py, do not edit */")
    print("/* clang-format off */")
    print("#include <stdint.h>")
    print()
    for name, letter in (("letters", "L"), ("numbers", "N")):
        table(name, [c for c in range(0x110000) if unicodedata.category(chr(c))[0] == letter])
    table("spaces", SPACES)
    print("/* clang-format on */")


if __name__ == "__main__":
    main()
