"""Interpreters that have what a file of requirements asks for, made once."""
import hashlib
import subprocess
import sys
import venv
from pathlib import Path


def interpreter(folder: Path, requirements: Path, patience: int) -> Path:
    """The interpreter of the environment in `folder`; the installation is given up after so many seconds."""
    state = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    stamp, python = folder / "installed", folder / "bin" / "python"
    if not (stamp.exists() and stamp.read_text() == state):
        print(f"installing {requirements.name}", file=sys.stderr)
        venv.create(folder, clear=True, with_pip=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirements]
        try:
            subprocess.run(install, check=True, timeout=patience)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            sys.exit("the peers could not be installed; pip is needed, and a way to its packages")
        stamp.write_text(state)
    return python
