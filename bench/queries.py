#!/usr/bin/env python3
"""Private queries beside the same queries without privacy, and beside peers: one run, one table.

    cargo build --release -p demur -p demur-engine --bin demur --example measure
    python3 bench/queries.py [--rows 1000000,10000000] [--runs 5] [--no-peers] [--json FILE]

Makes a seeded Parquet file (user_id; 50 regions; 5 000 cities, zipf; age; spend, 5 % missing; day; ten rows per user on average) in target/bench, once,
and runs every contestant in fresh processes that take turns: DataFusion without privacy, the same with bounding written as SQL, demur
with a durable charge, DuckDB without privacy, OpenDP (polars), qrlew with DuckDB, SmartNoise SQL. The median counts. Then how far off answers
are at equal (ε, δ). Python's packages are installed into environments in target/bench.
"""
import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench" / "peers"))

import accuracy  # noqa: E402
from environment import interpreter  # noqa: E402

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
MEASURE = TARGET / "release" / "examples" / "measure"
DEMUR = TARGET / "release" / "demur"

CATALOG = """
[budget]
name = "bench"
epsilon = 1000000
delta = 0.01

[tables.t]
files = "t.parquet"
unit = "{unit}"
{limits}
[tables.t.columns]
user_id = {{ type = "int64" }}
region = {{ type = "string" }}
city = {{ type = "string" }}
age = {{ type = "int64", low = 0, high = 110 }}
spend = {{ type = "float64", low = 0, high = 500 }}
day = {{ type = "date" }}
"""

BOUNDING = """
WITH parts AS (SELECT user_id, region, COUNT(*) AS n, SUM(spend) AS s, COUNT(spend) AS c FROM t GROUP BY user_id, region),
     ranked AS (SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY region) AS r FROM parts)
SELECT region, SUM(n), SUM(s), SUM(s) / SUM(c) FROM ranked WHERE r <= 5 GROUP BY region
"""

# name: (short name, privacy unit, SQL, the same bounded in SQL)
QUESTIONS = {
    "COUNT, SUM, AVG by region, per row": (
        "row", "row", "SELECT region, COUNT(*), SUM(spend), AVG(spend) FROM t GROUP BY region", None),
    "the same per user, at most 5 regions": (
        "user", "user_id", "SELECT region, COUNT(*), SUM(spend), AVG(spend) FROM t GROUP BY region", BOUNDING),
    "COUNT DISTINCT user by city, private keys": (
        "distinct", "user_id", "SELECT city, COUNT(DISTINCT user_id) FROM t GROUP BY city", None),
    "median and p90 by region, per row": (
        "quantiles", "row", "SELECT region, MEDIAN(spend), {p90} FROM t GROUP BY region", None),
}
P90 = {"ours": "PERCENTILE_CONT(spend, 0.9)", "raw": "percentile_cont(0.9) WITHIN GROUP (ORDER BY spend)"}
# What each peer can be asked.
PEERS = {"opendp": ("row", "user", "distinct", "quantiles"), "qrlew": ("user", "distinct"), "smartnoise": ("row", "user", "distinct")}


NUMBERS = itertools.count(1)


def generate(rows, folder):
    """The file, made once; the seed is the number of rows."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "t.parquet"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(rows)
    user = rng.integers(0, rows // 10, rows)
    weights = 1.0 / np.arange(1, 5001) ** 1.1
    city = rng.choice(5000, rows, p=weights / weights.sum())
    spend = np.round(rng.gamma(2.0, 40.0, rows), 2)
    table = pa.table({
        "user_id": pa.array(user, pa.int64()),
        "region": pa.array(np.char.add("region ", rng.integers(0, 50, rows).astype(str))),
        "city": pa.array(np.char.add("city ", city.astype(str))),
        "age": pa.array(rng.integers(0, 100, rows), pa.int64()),
        "spend": pa.array(spend, pa.float64(), mask=rng.random(rows) < 0.05),
        "day": pa.array(rng.integers(19000, 20000, rows).astype("int32"), pa.date32()),
    })
    pq.write_table(table, path.with_suffix(".part"), row_group_size=1 << 17)
    path.with_suffix(".part").rename(path)
    return path


def project(folder, unit, data):
    """A folder with a catalog for this unit, over the same file."""
    here = folder / unit
    here.mkdir(exist_ok=True)
    if not (here / "t.parquet").exists():
        os.link(data, here / "t.parquet")
    limits = "" if unit == "row" else "max_groups_per_unit = 5\nmax_rows_per_group = 10\n"
    (here / "demur.toml").write_text(CATALOG.format(unit=unit, limits=limits))
    # A new ledger, made before anything is measured.
    shutil.rmtree(here / ".demur", ignore_errors=True)
    measured("private", here, "SELECT COUNT(*) FROM t")
    return here


def measured(mode, folder, sql):
    # Questions that are a little different, so that the ledger does not know the answer.
    epsilon = f"1.{next(NUMBERS):06}"
    done = subprocess.run([MEASURE, mode, folder, sql, epsilon], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"measure {mode} failed: {done.stderr}")
    return json.loads(done.stdout)


def peer(who, question, data):
    python = interpreters()[who if who in ("qrlew", "smartnoise") else "queries"]
    command = [python, ROOT / "bench" / "peers" / "query_peers.py", who, question, data]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{who} failed: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def interpreters():
    """Interpreters with the peers."""
    here = ROOT / "bench" / "peers"
    made = lambda name: interpreter(TARGET / "bench" / name, here / f"requirements-{name}.txt", 600)
    return {name: made(name) for name in ("queries", "qrlew", "smartnoise")}


def measure(rows, runs, with_peers):
    """One table, and its figures."""
    folder = TARGET / "bench" / str(rows)
    data = generate(rows, folder)
    print(f"\n{rows:,} rows, median of {runs} fresh processes in turns (seconds; ratios; peak MB; keys shown)\n")
    found = []
    for name, (short, unit, sql, bounding) in QUESTIONS.items():
        here = project(folder, unit, data)
        contestants = {
            "raw": lambda: measured("raw", here, sql.format(p90=P90["raw"])),
            "demur": lambda: measured("private", here, sql.format(p90=P90["ours"])),
            "reading": lambda: measured("tally", here, sql.format(p90=P90["ours"])),
            "duckdb": lambda: peer("duckdb", short, data),
        }
        if bounding:
            contestants["bounded"] = lambda: measured("raw", here, bounding)
        if with_peers:
            contestants |= {who: (lambda who=who: peer(who, short, data)) for who in PEERS if short in PEERS[who]}
        turns = {who: [] for who in contestants}
        for _ in range(runs):
            for who, run in contestants.items():
                turns[who].append(run())
        seconds = {who: statistics.median(turn["seconds"] for turn in all) for who, all in turns.items()}
        peak = {who: max(turn["peak_kib"] for turn in all) / 1024 for who, all in turns.items()}
        keys = {who: statistics.median(turn["rows"] for turn in all) for who, all in turns.items()}
        print(name)
        for who in contestants:
            ratio = f"demur takes {seconds['demur'] / seconds[who]:7.3f} of it" if who not in ("demur", "reading") else ""
            print(f"  {who:12}{seconds[who]:9.3f} s  {peak[who]:6.0f} MB {keys[who]:7.0f} keys   {ratio}")
        found.append({"rows": rows, "question": name, "seconds": seconds, "peak_mib": peak, "keys": keys})
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="1000000,10000000")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    if not MEASURE.exists() or not DEMUR.exists():
        sys.exit("build first: cargo build --release -p demur -p demur-engine --bin demur --example measure")
    python = interpreters()["queries"]
    if Path(sys.prefix).resolve() != python.parent.parent.resolve():
        os.execv(python, [python, __file__, *sys.argv[1:]])
    results = []
    for rows in map(int, options.rows.split(",")):
        # The peers are asked about a million rows; ten times as many would say the same for an hour.
        results += measure(rows, options.runs, not options.no_peers and rows <= 1_000_000)
    results.append({"accuracy": accuracy.cells(DEMUR, TARGET / "bench" / "accuracy")})
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
