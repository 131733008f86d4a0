#!/usr/bin/env python3
"""Which questions of bench/tpch.py a peer understands: `tpch_peers.py qrlew|smartnoise|opendp`, in that peer's environment.

Tables of a few rows; only whether the question is planned matters, not its answer. Prints a line for each question: the peer's own first words when it refuses.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tpch import QUESTIONS, plain  # noqa: E402

TABLES = {
    "customer": "c_custkey INTEGER, c_nationkey INTEGER, c_mktsegment TEXT",
    "orders": "o_orderkey INTEGER, o_custkey INTEGER, o_orderdate DATE, o_orderpriority TEXT",
    "lineitem": "l_orderkey INTEGER, l_suppkey INTEGER, l_quantity INTEGER, l_extendedprice REAL, l_discount REAL, l_returnflag TEXT, "
    "l_linestatus TEXT, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipmode TEXT",
    "supplier": "s_suppkey INTEGER, s_nationkey INTEGER",
    "nation": "n_nationkey INTEGER, n_name TEXT, n_regionkey INTEGER",
}
UNIT = [("customer", [], "c_custkey"), ("orders", [], "o_custkey"), ("lineitem", [("l_orderkey", "orders", "o_orderkey")], "o_custkey")]


def value(kind, i):
    return {"INTEGER": str(i % 7), "REAL": f"{i}.5", "TEXT": f"'v{i % 3}'", "DATE": f"'1994-01-{1 + i % 28:02}'"}[kind]


def qrlew():
    import pyqrlew
    import sqlalchemy

    engine = sqlalchemy.create_engine("sqlite://")
    with engine.connect() as connection:
        for table, columns in TABLES.items():
            connection.execute(sqlalchemy.text(f"CREATE TABLE {table} ({columns})"))
            kinds = [column.split()[1] for column in columns.split(", ")]
            for i in range(30):
                connection.execute(sqlalchemy.text(f"INSERT INTO {table} VALUES ({', '.join(value(kind, i) for kind in kinds)})"))
        connection.commit()
    dataset = pyqrlew.Dataset.from_database("d", engine, None, ranges=False, possible_values_threshold=None)
    for table, columns in TABLES.items():
        for name, kind in (column.split() for column in columns.split(", ")):
            if kind in ("INTEGER", "REAL"):
                dataset = dataset.with_range(None, table, name, 0.0, 100000.0)

    def ask(sql):
        private = dataset.relation(sql).rewrite_with_differential_privacy(dataset, UNIT, {"epsilon": 1.0, "delta": 1e-6}, None, 4.0, None)
        private.relation().to_query(pyqrlew.Dialect.PostgreSql)

    return ask


def smartnoise():
    import sqlite3

    import snsql

    kinds = {"INTEGER": "int", "REAL": "float", "TEXT": "string", "DATE": "datetime"}
    tables = {}
    for table, columns in TABLES.items():
        known = {name: {"type": kinds[kind]} for name, kind in (column.split() for column in columns.split(", "))}
        for column in known.values():
            if column["type"] in ("int", "float"):
                column |= {"lower": 0, "upper": 1000}
        for name in ("c_custkey", "o_custkey"):
            if name in known:
                known[name]["private_id"] = True
        tables[table] = {"rows": 30, "max_ids": 4, "row_privacy": table in ("supplier", "nation", "lineitem"), **known}
    privacy = snsql.Privacy(epsilon=1.0, delta=1e-6)
    reader = snsql.from_connection(sqlite3.connect(":memory:"), engine="sqlite", privacy=privacy, metadata={"": {"d": tables}})

    def ask(sql):
        sql = sql.replace("date_trunc('month', o_orderdate)", "o_orderdate")
        for table in TABLES:
            sql = sql.replace(f" {table} ", f" d.{table} ").replace(f"FROM {table}", f"FROM d.{table}")
        reader.get_privacy_cost(sql)

    return ask


def opendp():
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    kinds = {"INTEGER": pl.Int64, "REAL": pl.Float64, "TEXT": pl.String, "DATE": pl.Date}
    frames = {
        table: pl.LazyFrame(schema={name: kinds[kind] for name, kind in (column.split() for column in columns.split(", "))})
        for table, columns in TABLES.items()
    }

    def ask(sql):
        lines = frames["lineitem"]
        unit = dp.unit_of(contributions=40, identifier=pl.col("l_orderkey"))
        context = dp.Context.compositor(data=lines, privacy_unit=unit, privacy_loss=dp.loss_of(epsilon=1.0, delta=1e-6), split_evenly_over=1)
        # Whose a line is stands in orders: nothing can be asked without that join.
        context.query().join(frames["orders"], left_on="l_orderkey", right_on="o_orderkey").select(dp.len()).release()

    return ask


def main():
    ask = {"qrlew": qrlew, "smartnoise": smartnoise, "opendp": opendp}[sys.argv[1]]()
    for name in QUESTIONS:
        try:
            # Two peers do not know dates that are written as such; that is not what matters here.
            ask(plain(name).replace("DATE '", "'"))
            said = "planned"
        except BaseException as error:  # noqa: BLE001  (a panic of Rust is one)
            said = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"[:160]
        print(f"{sys.argv[1]:11}{name:5}{said}")


if __name__ == "__main__":
    main()
