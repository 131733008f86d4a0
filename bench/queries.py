#!/usr/bin/env python3
"""Private queries beside the same queries without privacy, and beside peers: one run, one table.

    cargo build --release -p demur-engine --example measure
    python3 bench/queries.py [--rows 1000000,10000000] [--runs 5] [--peers] [--json FILE]

Makes a seeded Parquet file (user_id; 50 regions; 5 000 cities, zipf; age; spend, 5 % missing; day; ten rows per user on average) in target/bench, once,
and runs every contestant in fresh processes that take turns: DataFusion without privacy, the same with bounding written as SQL, demur
with a durable charge, DuckDB. The median counts. Needs numpy, pyarrow and duckdb; --peers needs opendp[polars] and pyqrlew as well.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
MEASURE = TARGET / "release" / "examples" / "measure"

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

QUESTIONS = {
    "COUNT, SUM, AVG by region, per row": ("row", "SELECT region, COUNT(*), SUM(spend), AVG(spend) FROM t GROUP BY region", None),
    "the same per user, at most 5 regions": ("user_id", "SELECT region, COUNT(*), SUM(spend), AVG(spend) FROM t GROUP BY region", BOUNDING),
    "COUNT DISTINCT user by city, private keys": ("user_id", "SELECT city, COUNT(DISTINCT user_id) FROM t GROUP BY city", None),
    "median and p90 by region, per row": ("row", "SELECT region, MEDIAN(spend), {p90} FROM t GROUP BY region", None),
}
P90 = {"ours": "PERCENTILE_CONT(spend, 0.9)", "raw": "percentile_cont(0.9) WITHIN GROUP (ORDER BY spend)", "duckdb": "quantile_cont(spend, 0.9)"}


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
    return here


def measured(mode, folder, sql):
    shutil.rmtree(folder / ".demur", ignore_errors=True)
    done = subprocess.run([MEASURE, mode, folder, sql], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"measure {mode} failed: {done.stderr}")
    return json.loads(done.stdout)


def duckdb(folder, sql):
    program = (
        "import duckdb, sys, time\n"
        "start = time.perf_counter()\n"
        "duckdb.sql(sys.argv[2].replace(' FROM t', f\" FROM '{sys.argv[1]}/t.parquet'\")).fetchall()\n"
        "print(time.perf_counter() - start)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, folder, sql], capture_output=True, text=True, timeout=600)
    return {"seconds": float(done.stdout), "peak_kib": 0} if done.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", default="1000000,10000000")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    if not MEASURE.exists():
        sys.exit("build it first: cargo build --release -p demur-engine --example measure")
    results = []
    for rows in map(int, options.rows.split(",")):
        folder = TARGET / "bench" / str(rows)
        data = generate(rows, folder)
        print(f"\n{rows:,} rows, median of {options.runs} fresh processes in turns (seconds; peak MB)\n")
        print(f"{'':44}{'raw':>8}{'bounded':>9}{'demur':>8}{'reading':>9}{'duckdb':>8}   ratio  MB raw  MB demur")
        for name, (unit, sql, bounding) in QUESTIONS.items():
            here = project(folder, unit, data)
            contestants = {
                "raw": lambda: measured("raw", here, sql.format(p90=P90["raw"])),
                "demur": lambda: measured("private", here, sql.format(p90=P90["ours"])),
                "reading": lambda: measured("tally", here, sql.format(p90=P90["ours"])),
                "duckdb": lambda: duckdb(here, sql.format(p90=P90["duckdb"])),
            }
            if bounding:
                contestants["bounded"] = lambda: measured("raw", here, bounding)
            turns = {who: [] for who in contestants}
            for _ in range(options.runs):
                for who, run in contestants.items():
                    turns[who].append(run())
            median = {
                who: statistics.median(turn["seconds"] for turn in all) if all[0] else float("nan") for who, all in turns.items()
            }
            peak = {who: max(turn["peak_kib"] for turn in all) / 1024 if all[0] else 0 for who, all in turns.items()}
            bounded = f"{median['bounded']:9.3f}" if bounding else f"{'–':>9}"
            print(
                f"{name:44}{median['raw']:8.3f}{bounded}{median['demur']:8.3f}{median['reading']:9.3f}{median['duckdb']:8.3f}"
                f"{median['demur'] / median['raw']:8.2f}{peak['raw']:8.0f}{peak['demur']:10.0f}"
            )
            results.append({"rows": rows, "question": name, "seconds": median, "peak_mib": peak})
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
