#!/usr/bin/env python3
"""demur's training beside diffprivlib and opacus: one run, one table.

    cargo build --release -p demur-learn --examples && python3 bench/peers/learning.py [tables] [networks] [TURNS EPOCHS]

The peers are installed into virtual environments beside this file, once (opacus brings several gigabytes). Ours are the examples of
target/release, or of the folder in DEMUR_EXAMPLES.

Tables: area under the curve of logistic regression on rows that were not trained on, at ε 0.1, 1 and 10. Ours has δ = 10⁻⁵ and no parameter to choose; its constants were settled on these tables. diffprivlib has δ = 0, and gets the
best of two encodings and four strengths of regularisation, chosen by the very figure that is shown. Networks: the same two on handwritten digits, with equal batches, epochs, clipping, rates and
(ε, δ), turn by turn; the median of the turns' ratios counts, by the clock and, for busy machines, by the processor's time. After ± stands the deviation of one turn.
"""
import os
import statistics
import subprocess
import sys
from pathlib import Path

from environment import interpreter

HERE = Path(__file__).resolve().parent
EXAMPLES = Path(os.environ.get("DEMUR_EXAMPLES", HERE.parent.parent / "target" / "release" / "examples"))
PATIENCE = 3600
EPSILONS = ["0.1", "1", "10"]
TURNS, EPSILON, EPOCHS = 3, "3", "3"


def lines(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return [line.split() for line in done.stdout.splitlines()]


def tables():
    python = interpreter(HERE / "target" / "venv-learning", HERE / "requirements-learning.txt", PATIENCE)
    peer = {(name, epsilon): float(auc) for name, epsilon, auc in lines([python, HERE / "learning_peers.py", "tables", *EPSILONS])}
    print(f"{'AUC':<10}{'ε':>6}{'demur':>10}{'diffprivlib':>14}")
    for name, epsilon, auc in lines([EXAMPLES / "tables", *EPSILONS]):
        print(f"{name:<10}{epsilon:>6}{float(auc):>10.4f}{peer[name, epsilon]:>14.4f}")


def networks():
    python = interpreter(HERE / "target" / "venv-opacus", HERE / "requirements-opacus.txt", PATIENCE)
    turns_wanted, epochs = ARGUMENTS or [TURNS, EPOCHS]
    print(f"{'network':<8}{'demur':>16}{'opacus':>16}{'examples/s':>12}{'opacus':>9}{'times':>7}{'by processor':>14}")
    for name in ["cnn", "mlp"]:
        turns = []
        for _ in range(int(turns_wanted)):
            ours = lines([EXAMPLES / "networks", EPSILON, epochs, name])[0]
            theirs = lines([python, HERE / "learning_peers.py", "networks", EPSILON, epochs, name])[0]
            turns.append([*map(float, ours[1:4]), *map(float, theirs[1:4])])
        column = lambda at: [turn[at] for turn in turns]
        spread = lambda at: statistics.stdev(column(at)) if len(turns) > 1 else 0
        accuracy = lambda at: f"{statistics.mean(column(at)):.4f} ± {spread(at):.4f}"
        times = lambda at: statistics.median(turn[at] / turn[at + 3] for turn in turns)
        speeds = f"{statistics.mean(column(1)):>12.0f}{statistics.mean(column(4)):>9.0f}{times(1):>7.1f}{times(2):>14.1f}"
        print(f"{name:<8}{accuracy(0):>16}{accuracy(3):>16}{speeds}", flush=True)


if __name__ == "__main__":
    parts = [part for part in sys.argv[1:] if not part.isdigit()]
    ARGUMENTS = [part for part in sys.argv[1:] if part.isdigit()]
    for part in parts or ["tables", "networks"]:
        {"tables": tables, "networks": networks}[part]()
