"""One question to one peer, in a process of its own: `query_peers.py PEER QUESTION FILE`.

Prints a line of JSON: seconds from the file to the answer, the keys that were shown, the peak of memory. Imports are not counted,
for nobody. Everybody is given ε = 1, δ = 10⁻⁶ and at most 5 groups per person; OpenDP also at most 10 rows in each. SmartNoise takes ε for each column: by its own
`get_privacy_cost` the question with three aggregates costs it ε = 4, and that for distinct users ε = 1. Times can be compared, errors of the former cannot.
"""
import json
import resource
import sys
import time
import warnings

warnings.filterwarnings("ignore")

SQL = {
    "row": "SELECT region, COUNT(*) AS n, SUM(spend) AS s, AVG(spend) AS a FROM {table} GROUP BY region",
    "user": "SELECT region, COUNT(*) AS n, SUM(spend) AS s, AVG(spend) AS a FROM {table} GROUP BY region",
    "distinct": "SELECT city, COUNT(DISTINCT user_id) AS n FROM {table} GROUP BY city",
    "raw quantiles": "SELECT region, median(spend), quantile_cont(spend, 0.9) FROM {table} GROUP BY region",
}


def duckdb(question, path):
    import duckdb

    start = time.perf_counter()
    sql = SQL["raw quantiles" if question == "quantiles" else question].format(table=f"'{path}'")
    return start, len(duckdb.sql(sql).fetchall())


def opendp(question, path):
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    start = time.perf_counter()
    by = "city" if question == "distinct" else "region"
    rows = 1 if question == "distinct" else 10
    limits = [dp.polars.Bound(by=[by], per_group=rows, num_groups=5)]
    per_user = question in ("user", "distinct")
    unit = dp.unit_of(contributions=limits, identifier=pl.col("user_id")) if per_user else dp.unit_of(contributions=1)
    public = {} if per_user else {"invariant": "keys"}
    margin = dp.polars.Margin(by=[by], max_length=1 << 24, max_groups=1 << 13, **public)
    loss = dp.loss_of(epsilon=1.0, delta=1e-6)
    context = dp.Context.compositor(
        data=pl.scan_parquet(path), privacy_unit=unit, privacy_loss=loss, split_evenly_over=1, margins=[margin]
    )
    query = context.query()
    if per_user:
        # Its own choice of groups at random fails with this polars; the first ones are no harder to find.
        query = query.truncate_per_group(rows, by=[by]).truncate_num_groups(5, by=[by], keep="first")
    spend = pl.col("spend").fill_null(0.0).fill_nan(0.0)
    candidates = [float(x) for x in range(501)]
    wanted = {
        # It has no mean for groups of unknown size: a sum and a count.
        "row": [dp.len(), spend.dp.sum((0.0, 500.0))],
        "user": [dp.len(), spend.dp.sum((0.0, 500.0))],
        "distinct": [dp.len()],
        "quantiles": [spend.dp.median(candidates).alias("m"), spend.dp.quantile(0.9, candidates).alias("p")],
    }
    return start, query.group_by(by).agg(*wanted[question]).release().collect().height


def qrlew(question, path):
    import duckdb
    import pyqrlew
    import sqlalchemy

    start = time.perf_counter()
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.connect() as connection:
        columns = "user_id INTEGER, region TEXT, city TEXT, age INTEGER, spend REAL"
        connection.execute(sqlalchemy.text(f"CREATE TABLE t ({columns})"))
        for i in range(60):
            row = f"({i}, 'region {i % 50}', 'city {i}', {i}, {i}.5)"
            connection.execute(sqlalchemy.text(f"INSERT INTO t VALUES {row}"))
        connection.commit()
    dataset = pyqrlew.Dataset.from_database("d", engine, None, ranges=False, possible_values_threshold=None)
    dataset = dataset.with_range(None, "t", "spend", 0.0, 500.0).with_range(None, "t", "user_id", 0.0, 1e9)
    dataset = dataset.with_possible_values(None, "t", "region", [f"region {i}" for i in range(50)])
    private = dataset.relation(SQL[question].format(table="t")).rewrite_with_differential_privacy(
        dataset, [("t", [], "user_id")], {"epsilon": 1.0, "delta": 1e-6}, None, 5.0, None
    )
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW t AS SELECT * FROM '{path}'")
    return start, len(connection.execute(private.relation().to_query(pyqrlew.Dialect.PostgreSql)).fetchall())


def smartnoise(question, path):
    import pandas
    import snsql

    start = time.perf_counter()
    frame = pandas.read_parquet(path, columns=["user_id", "region", "city", "spend"])
    per_row = question == "row"
    table = {
        "row_privacy": per_row,
        "max_ids": 1 if per_row else 5,
        "rows": len(frame),
        "censor_dims": not per_row,
        "user_id": {"type": "int", "private_id": not per_row},
        "region": {"type": "string"},
        "city": {"type": "string"},
        "spend": {"type": "float", "lower": 0.0, "upper": 500.0},
    }
    privacy = snsql.Privacy(epsilon=1.0, delta=1e-6)
    reader = snsql.from_df(frame, privacy=privacy, metadata={"": {"d": {"t": table}}})
    return start, len(reader.execute(SQL[question].format(table="d.t"))) - 1


def main():
    peer, question, path = sys.argv[1:]
    start, keys = {"duckdb": duckdb, "opendp": opendp, "qrlew": qrlew, "smartnoise": smartnoise}[peer](question, path)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": seconds, "rows": keys, "peak_kib": peak}))


if __name__ == "__main__":
    main()
