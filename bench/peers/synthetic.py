#!/usr/bin/env python3
"""demur's synthetic data beside private-pgm's, on Adult: one run, one table.

    cargo build --release -p demur-synth --example adult && python3 bench/peers/synthetic.py [--runs 5] [--peer-runs 1] [--aim-seconds 300]

The peer's inference (mbi) is installed into a virtual environment beside this file, once; synthetic_peers.py says how it is used. Data comes from
../shared/data/adult, or from DEMUR_DATA. Per contestant and ε (δ = 10⁻⁹): the mean total variation over all 2-way and all 3-way marginals between
the table and as many drawn rows, seconds by the wall clock with two cores, and the most memory of the process.
"""
import argparse
import csv
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from environment import interpreter

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
OURS = TARGET / "release" / "examples" / "adult"
DATA = Path(os.environ.get("DEMUR_DATA", ROOT / ".." / "shared" / "data")).resolve() / "adult"
EPSILONS = ["0.1", "1", "10"]
DELTA = "1e-9"

JUDGE = """
import gzip, itertools, json, sys
import numpy as np
folder, out = sys.argv[1:]
sizes = json.load(open(folder + "/adult_discrete-domain.json"))
with gzip.open(folder + "/adult_discrete.csv.gz", "rt") as file:
    names = file.readline().strip().split(",")
    truth = np.loadtxt(file, delimiter=",", dtype=int)
rows = np.load(out)
def law(codes, columns):
    cell = np.zeros(len(codes), dtype=int)
    for column in columns:
        cell = cell * sizes[names[column]] + codes[:, column]
    values, counts = np.unique(cell, return_counts=True)
    return dict(zip(values.tolist(), (counts / len(codes)).tolist()))
def mean(ways):
    total = []
    for columns in itertools.combinations(range(len(names)), ways):
        one, two = law(truth, columns), law(rows, columns)
        total.append(sum(abs(one.get(cell, 0) - two.get(cell, 0)) for cell in one.keys() | two.keys()) / 2)
    return float(np.mean(total))
print(json.dumps({"two_way": mean(2), "three_way": mean(3)}))
"""


def ours(runs):
    command = [OURS, "--data", DATA, "--runs", str(runs)]
    rows = []
    # A process for each, so that memory is its own.
    for method, epsilon in itertools.product(["mst", "aim", "mwem"], EPSILONS):
        done = subprocess.run([*command, "--method", method, "--epsilon", epsilon], capture_output=True, text=True, check=True)
        [row] = csv.DictReader(done.stdout.splitlines())
        figures = {name: float(row[name]) for name in ("two_way", "three_way", "seconds")}
        rows.append(figures | {"name": f"demur {method}", "epsilon": epsilon, "megabytes": float(row["peak_megabytes"])})
    return rows


def peer(python, method, epsilon, runs, seconds):
    all_runs = []
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rows.npy"
        for _ in range(runs):
            arguments = [python, HERE / "synthetic_peers.py", method, DATA, epsilon, DELTA, out, str(seconds)]
            done = subprocess.run(arguments, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"the peer failed:\n{done.stderr}")
            said = json.loads(done.stdout.splitlines()[-1])
            judged = subprocess.run([python, "-c", JUDGE, DATA, out], capture_output=True, text=True, check=True)
            all_runs.append(said | json.loads(judged.stdout))
    mean = {name: sum(run[name] for run in all_runs) / runs for name in all_runs[0]}
    name = f"private-pgm {method}"
    if mean.get("spent", 1.0) < 1.0:
        name += f", stopped with {100 * mean['spent']:.0f} % spent"
    return mean | {"name": name, "epsilon": epsilon}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--peer-runs", type=int, default=1)
    parser.add_argument("--aim-seconds", type=int, default=0, help="how long the peer's AIM may take; 0 leaves it out")
    options = parser.parse_args()
    if not DATA.exists():
        sys.exit(f"Adult is not there: {DATA}; DEMUR_DATA names another folder")
    if not OURS.exists():
        sys.exit("build ours first: cargo build --release -p demur-synth --example adult")
    python = interpreter(HERE / "target" / "venv-synth", HERE / "requirements-synth.txt", 600)
    rows = ours(options.runs)
    rows += [peer(python, "mst", epsilon, options.peer_runs, 0) for epsilon in EPSILONS]
    if options.aim_seconds:
        rows += [peer(python, "aim", epsilon, 1, options.aim_seconds) for epsilon in EPSILONS]
    print("| | ε | 2-way | 3-way | seconds | MB |\n|---|---|---|---|---|---|")
    for row in rows:
        figures = f"{row['two_way']:.4f} | {row['three_way']:.4f} | {row['seconds']:.2f} | {row['megabytes']:.0f}"
        print(f"| {row['name']} | {row['epsilon']} | {figures} |")


if __name__ == "__main__":
    main()
