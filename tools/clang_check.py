"""clang's opinion of every source: python tools/clang_check.py BUILD

Each compilation of BUILD/compile_commands.json once more by clang, which says all that it has to say before it makes
code; so no code is made. Exit: 0 nothing to say, 1 something.
"""

import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys


def words(entry):
    """The flags of one compilation, without the compiler (and what launches it) and without what it makes."""
    all_words = shlex.split(entry["command"])
    flags = all_words[next(i for i, w in enumerate(all_words) if w.startswith("-")) :]
    output = flags.index("-o")
    return [w for w in flags[:output] + flags[output + 2 :] if w != "-c"]


def check(entry):
    result = subprocess.run(["clang", "-fsyntax-only", *words(entry)], cwd=entry["directory"], capture_output=True, text=True)
    return "" if result.returncode == 0 and not result.stderr else result.stderr or f"{entry['file']}: clang failed\n"


def main():
    entries = json.loads((pathlib.Path(sys.argv[1]) / "compile_commands.json").read_text())
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", 2))) as pool:
        said = [s for s in pool.map(check, entries) if s]
    print("".join(said), end="")
    print(f"clang: {len(entries)} compilations, {len(said)} with warnings or errors")
    return bool(said) or not entries


if __name__ == "__main__":
    sys.exit(main())
