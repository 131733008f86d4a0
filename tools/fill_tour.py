#!/usr/bin/env python3
"""Types every command of docs/tour.md in a copy of examples/visits and puts what it prints beneath it.

    cargo build --release && python3 tools/fill_tour.py target/release/demur
"""
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main():
    binary = Path(sys.argv[1]).resolve()
    tour = ROOT / "docs" / "tour.md"
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder) / "visits"
        shutil.copytree(ROOT / "examples" / "visits", here, ignore=shutil.ignore_patterns(".demur"))

        def filled(block):
            command = block.group(1)
            words = shlex.split(command)
            done = subprocess.run([binary, *words[1:]], cwd=here, capture_output=True, text=True)
            return f"```console\n$ {command}\n{done.stdout}{done.stderr}```"

        text = tour.read_text()
        tour.write_text(re.sub(r"```console\n\$ ([^\n]*)\n.*?```", filled, text, flags=re.S))


if __name__ == "__main__":
    main()
