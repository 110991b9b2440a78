#!/usr/bin/env python3
"""Prints what the headers of C and POSIX on this machine define, one word per line: `macros` that stand for
something wherever the word appears, or the `names` of functions, types, variables and constants.

src/emit/c/words/ holds such lists: what a variable, or a program, cannot be called in emitted C. A test compares.

    tools/cwords.py macros|names [--strict]
"""

import re
import subprocess
import sys

ISO = """assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic
stdbool stddef stdint stdio stdlib stdnoreturn string threads time uchar wchar wctype""".split()
POSIX = """unistd fcntl sys/types sys/stat sys/mman sys/time sys/socket sys/wait sys/select poll pthread sched semaphore
dirent dlfcn strings termios netdb netinet/in arpa/inet sys/un sys/uio sys/resource sys/ioctl getopt glob regex pwd grp
syslog spawn sys/ipc sys/shm malloc alloca endian byteswap""".split()


def preprocessed(strict, *options):
    headers = ISO if strict else ISO + POSIX
    mode = ["-std=c17"] if strict else ["-std=gnu17", "-D_GNU_SOURCE"]
    source = "".join(f"#include <{h}.h>\n" for h in headers)
    return subprocess.run(["gcc", *mode, *options, "-E", "-x", "c", "-"], input=source, capture_output=True, text=True,
                          check=True).stdout  # fmt: skip


def macros(strict):
    return set(re.findall(r"^#define ([A-Za-z][A-Za-z0-9_]*)(?: |$)", preprocessed(strict, "-dM"), re.M))


def without(text, opens, closes, keeps=None):
    """The text without what stands in such brackets, and without the brackets."""
    out, depth, i = [], 0, 0
    while i < len(text):
        if depth or (text[i] == opens and not (keeps and keeps("".join(out[-80:])))):
            depth += (text[i] == opens) - (text[i] == closes)
            out.append("" if depth else " ")
        else:
            out.append(text[i])
        i += 1
    return "".join(out)


def names(strict):
    text = re.sub(r'"(\\.|[^"\\])*"|^#.*$', " ", preprocessed(strict, "-P"), flags=re.M)
    text = re.sub(r"\(\s*\*\s*([A-Za-z_]\w*)\s*\)", r" \1 ", text)  # a declarator, no parameter
    text = without(text, "(", ")")
    text = without(text, "{", "}", lambda before: re.search(r"\benum\b[^;{}]*$", before))
    keywords = """auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while""".split()
    return set(re.findall(r"(?<![\w.])([A-Za-z]\w*)", text)) - set(keywords) - macros(strict)


if __name__ == "__main__":
    found = {"macros": macros, "names": names}[sys.argv[1]]("--strict" in sys.argv)
    print("\n".join(sorted(found)))
