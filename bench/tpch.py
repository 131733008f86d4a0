#!/usr/bin/env python3
"""Questions over several tables: customers, orders, lines; the unit is the customer, through orders.

    cargo build --release -p demur -p demur-engine --bin demur --example measure
    python3 bench/tpch.py [--scale 0.1,1] [--runs 5] [--epsilon 1]

Makes tables like those of TPC-H in target/bench (seeded; sizes and columns as there, values drawn plainly), once, and asks adapted forms of its questions 1,
3, 5, 6, 10 and 12. Each runs in fresh processes that take turns with the same question bounded by hand in SQL (per customer and group, then the first groups of
each customer, then groups; no noise, no ledger). The answers are compared with exact ones from DuckDB.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from queries import DEMUR, MEASURE, TARGET, interpreters, measured

CATALOG = """
[budget]
name = "bench"
epsilon = 1000000
delta = 0.01

[tables.customer]
files = "customer.parquet"
unit = "c_custkey"
people = "customers"
max_groups_per_unit = 4
max_rows_per_group = 1
[tables.customer.columns]
c_custkey = { type = "int64" }
c_nationkey = { type = "int64" }
c_mktsegment = { type = "string", values = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"] }

[tables.orders]
files = "orders.parquet"
unit = "o_custkey"
people = "customers"
max_groups_per_unit = 4
max_rows_per_group = 12
[tables.orders.columns]
o_orderkey = { type = "int64" }
o_custkey = { type = "int64" }
o_orderdate = { type = "date" }
o_orderpriority = { type = "string", values = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"] }

[tables.lineitem]
files = "lineitem.parquet"
unit = { column = "l_orderkey", table = "orders", key = "o_orderkey" }
max_groups_per_unit = 4
max_rows_per_group = 40
[tables.lineitem.columns]
l_orderkey = { type = "int64" }
l_suppkey = { type = "int64" }
l_quantity = { type = "int64", low = 1, high = 50 }
l_extendedprice = { type = "float64", low = 0, high = 100000 }
l_discount = { type = "float64", low = 0, high = 0.1 }
l_returnflag = { type = "string", values = ["A", "N", "R"] }
l_linestatus = { type = "string", values = ["F", "O"] }
l_shipdate = { type = "date" }
l_commitdate = { type = "date" }
l_receiptdate = { type = "date" }
l_shipmode = { type = "string", values = ["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"] }

[tables.supplier]
files = "supplier.parquet"
public = true
[tables.supplier.columns]
s_suppkey = { type = "int64" }
s_nationkey = { type = "int64" }

[tables.nation]
files = "nation.parquet"
public = true
[tables.nation.columns]
n_nationkey = { type = "int64" }
n_name = { type = "string" }
n_regionkey = { type = "int64" }
"""

REVENUE = "l_extendedprice * (1 - l_discount)"
ORDERED = "lineitem JOIN orders ON l_orderkey = o_orderkey"
# name: (keys, values with the most rows of a customer in a group and their bounds, tables, condition, groups of a customer)
QUESTIONS = {
    "Q1": (["l_returnflag", "l_linestatus"], [("l_quantity", 1, 50), ("l_extendedprice", 0, 100000), (REVENUE, 0, 100000)],
           "lineitem", "l_shipdate <= DATE '1998-09-02'", 4),
    "Q3": (["date_trunc('month', o_orderdate)"], [(REVENUE, 0, 100000)],
           f"customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey",
           "c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'", 4),
    "Q5": (["n_name"], [(REVENUE, 0, 100000)],
           f"customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey "
           "JOIN supplier ON l_suppkey = s_suppkey AND c_nationkey = s_nationkey JOIN nation ON s_nationkey = n_nationkey",
           "n_regionkey = 2 AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'", 1),
    "Q6": ([], [("l_extendedprice * l_discount", 0, 10000)], "lineitem",
           "l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24", 1),
    "Q10": (["n_name"], [(REVENUE, 0, 100000)],
            f"customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey JOIN nation ON c_nationkey = n_nationkey",
            "l_returnflag = 'R' AND o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01'", 1),
    "Q12": (["l_shipmode"], [("CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END", 0, 1)], ORDERED,
            "l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate "
            "AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'", 2),
}


def plain(name):
    """The question as anybody would ask it; demur answers this very text."""
    keys, values, tables, condition, _ = QUESTIONS[name]
    columns = [f"{key} AS k{i}" for i, key in enumerate(keys)]
    columns += ["COUNT(*) AS n"] + [f"SUM({value}) AS s{i}" for i, (value, _, _) in enumerate(values)]
    return f"SELECT {', '.join(columns)} FROM {tables} WHERE {condition}" + (f" GROUP BY {', '.join(keys)}" if keys else "")


def bounded(name):
    """The same with every customer bounded, in SQL."""
    keys, values, tables, condition, groups = QUESTIONS[name]
    if "orders" not in tables:
        tables += " JOIN orders ON l_orderkey = o_orderkey"
    names = [f"k{i}" for i in range(len(keys))]
    inner = ["o_custkey AS unit"] + [f"{key} AS {k}" for key, k in zip(keys, names)] + ["COUNT(*) AS n"]
    inner += [f"SUM(LEAST(GREATEST({value}, {low}), {high})) AS s{i}" for i, (value, low, high) in enumerate(values)]
    sums = ", ".join(names + ["SUM(LEAST(n, 40)) AS n"] + [f"SUM(s{i} * LEAST(n, 40) / n) AS s{i}" for i in range(len(values))])
    parts = f"SELECT {', '.join(inner)} FROM {tables} WHERE {condition} GROUP BY {', '.join(['o_custkey'] + keys)}"
    if not keys:
        return f"WITH parts AS ({parts}) SELECT {sums} FROM parts"
    ranked = f"SELECT *, row_number() OVER (PARTITION BY unit ORDER BY {', '.join(names)}) AS r FROM parts"
    return (f"WITH parts AS ({parts}), ranked AS ({ranked}) SELECT {sums} FROM ranked WHERE r <= {groups} GROUP BY {', '.join(names)}")


def generate(scale, folder):
    """The tables, made once."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    if (folder / "lineitem.parquet").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(7)
    customers, orders, suppliers = int(150_000 * scale), int(1_500_000 * scale), max(int(10_000 * scale), 10)
    choose = lambda names, n: pa.array(np.array(names)[rng.integers(0, len(names), n)])
    day = lambda text: int(np.datetime64(text, "D").astype(int))
    days = lambda values: pa.array(values.astype("int32"), pa.date32())
    write = lambda name, columns: pq.write_table(pa.table(columns), folder / f"{name}.parquet", row_group_size=1 << 17)
    nations = np.arange(25)
    write("nation", {"n_nationkey": nations, "n_name": pa.array([f"nation {n}" for n in nations]), "n_regionkey": nations % 5})
    write("supplier", {"s_suppkey": np.arange(suppliers), "s_nationkey": rng.integers(0, 25, suppliers)})
    segments = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"]
    write("customer", {"c_custkey": np.arange(customers), "c_nationkey": rng.integers(0, 25, customers), "c_mktsegment": choose(segments, customers)})
    # A third of the customers order nothing, as in TPC-H.
    who = rng.integers(0, customers // 3 * 2, orders)
    ordered = rng.integers(day("1992-01-01"), day("1998-08-02"), orders)
    priorities = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
    write("orders", {"o_orderkey": np.arange(orders), "o_custkey": who, "o_orderdate": days(ordered), "o_orderpriority": choose(priorities, orders)})
    of = np.repeat(np.arange(orders), rng.integers(1, 8, orders))
    lines = len(of)
    quantity = rng.integers(1, 51, lines)
    shipped = ordered[of] + rng.integers(1, 122, lines)
    received = shipped + rng.integers(1, 31, lines)
    today = day("1995-06-17")
    flags = np.where(received <= today, np.array(["A", "R"])[rng.integers(0, 2, lines)], "N")
    write("lineitem", {
        "l_orderkey": of, "l_suppkey": rng.integers(0, suppliers, lines), "l_quantity": quantity,
        "l_extendedprice": np.round(quantity * rng.uniform(900, 2000, lines), 2), "l_discount": rng.integers(0, 11, lines) / 100,
        "l_returnflag": pa.array(flags), "l_linestatus": pa.array(np.where(shipped > today, "O", "F")),
        "l_shipdate": days(shipped), "l_commitdate": days(ordered[of] + rng.integers(30, 91, lines)), "l_receiptdate": days(received),
        "l_shipmode": choose(["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"], lines),
    })


def exact(folder, name):
    """Groups and their true numbers."""
    import duckdb

    database = duckdb.connect()
    for table in ("customer", "orders", "lineitem", "supplier", "nation"):
        database.execute(f"CREATE VIEW {table} AS SELECT * FROM '{folder / table}.parquet'")
    keys = len(QUESTIONS[name][0])
    return {tuple(str(k)[:10] for k in row[:keys]): [float(x) for x in row[keys:]] for row in database.execute(plain(name)).fetchall()}


def answered(folder, name, epsilon):
    """Groups and what demur says of them."""
    command = [DEMUR, "query", plain(name), "--project", folder, "--epsilon", epsilon, "--delta", "1e-6", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{name} failed: {done.stderr}")
    keys, sums = len(QUESTIONS[name][0]), len(QUESTIONS[name][1])
    rows = json.loads(done.stdout)["rows"]
    number = lambda row, column: float(row[column]["value"] if isinstance(row[column], dict) else row[column])
    return {tuple(str(row[f"k{i}"])[:10] for i in range(keys)): [number(row, c) for c in ["n"] + [f"s{i}" for i in range(sums)]] for row in rows}


def errors(truth, answers):
    """The median relative error of counts and sums over all groups that are shown, and how many are."""
    off = [abs(a - t) / max(abs(t), 1) for key, row in answers.items() if key in truth for a, t in zip(row, truth[key])]
    return (statistics.median(off) if off else float("nan")), len(answers), len(truth)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", default="0.1,1")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--epsilon", default="1")
    options = parser.parse_args()
    if not MEASURE.exists() or not DEMUR.exists():
        sys.exit("build first: cargo build --release -p demur -p demur-engine --bin demur --example measure")
    python = interpreters()["queries"]
    if Path(sys.prefix).resolve() != python.parent.parent.resolve():
        os.execv(python, [python, __file__, *sys.argv[1:]])
    for scale in map(float, options.scale.split(",")):
        folder = TARGET / "bench" / f"tpch-{scale:g}"
        generate(scale, folder)
        (folder / "demur.toml").write_text(CATALOG)
        shutil.rmtree(folder / ".demur", ignore_errors=True)
        print(f"\nscale {scale:g}, median of {options.runs} fresh processes in turns; error at ε = {options.epsilon}, δ = 1e-6\n")
        print(f"{'':5}{'bounded in SQL':>15}{'demur':>10}{'ratio':>8}{'relative error':>16}{'groups shown':>14}")
        for name in QUESTIONS:
            turns = {"private": [], "raw": []}
            for _ in range(options.runs):
                turns["private"].append(measured("private", folder, plain(name))["seconds"])
                turns["raw"].append(measured("raw", folder, bounded(name))["seconds"])
            ours, theirs = statistics.median(turns["private"]), statistics.median(turns["raw"])
            off, shown, all_groups = errors(exact(folder, name), answered(folder, name, options.epsilon))
            print(f"{name:5}{theirs:13.3f} s{ours:8.3f} s{ours / theirs:8.2f}{off:16.2%}{f'{shown} of {all_groups}':>14}")


if __name__ == "__main__":
    main()
