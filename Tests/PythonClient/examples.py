"""Executes the Python examples of a document, one after another in one namespace: examples.py DOCUMENT.

A block marked `text` has what the block before it prints.
"""
import contextlib
import io
import re
import sys


def main():
    with open(sys.argv[1]) as document:
        blocks = re.findall(r"^```(python|text)\n(.*?)^```$", document.read(), re.M | re.S)
    namespace, printed, checked = {}, "", 0
    for kind, text in blocks:
        if kind == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(text, sys.argv[1], "exec"), namespace)
            printed = output.getvalue()
        elif printed != text:
            raise SystemExit(f"printed:\n{printed}instead of:\n{text}")
        else:
            checked += 1
    print(checked)


main()
