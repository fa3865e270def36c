"""A text as a C array, for what is compiled into a program. As a program: c_text.py NAME HEADER TEXT OUT.c"""

import pathlib
import sys


def as_c(name, text):
    rows = [", ".join(str(byte - 256 if byte > 127 else byte) for byte in text[i:i + 32]) for i in range(0, len(text), 32)]
    return f"const char {name}[] = {{\n\t" + ",\n\t".join(rows) + ", 0\n};\n"


def main():
    name, header, text, out = sys.argv[1:]
    made = f'/* Made by c_text.py. */\n#include "{header}"\n\n' + as_c(name, pathlib.Path(text).read_bytes())
    pathlib.Path(out).write_text(made)


if __name__ == "__main__":
    main()
