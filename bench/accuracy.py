"""How far off answers are at equal (ε, δ), for 1, 3 and 10 sums and 1, 5 and 20 groups per person.

Every sum has values from 0 to 1, one row per person and group, keys that are selected privately; ε = 1, δ = 10⁻⁶. The figure is the
standard deviation of the noise of one sum. Ours is what `demur explain` says; OpenDP's is what its `summarize` says. The equal split is computed, not measured: n
aggregates and the count that selects keys get the same part of ε, so that Laplace noise has the scale κ·(n + 1)/ε. That is what SmartNoise charges for by its own
`get_privacy_cost` (ε for each column, and one more for the keys); for GoogleSQL it is an assumption that was not checked against a running engine.
"""
import json
import math
import subprocess
import sys

AGGREGATES, GROUPS = (1, 3, 10), (1, 5, 20)


def ours(demur, folder, aggregates, groups):
    columns = "\n".join(f'x{i} = {{ type = "int64", low = 0, high = 1 }}' for i in range(aggregates))
    (folder / "demur.toml").write_text(
        f'[budget]\nname = "accuracy"\nepsilon = 10\ndelta = 1e-5\n\n[tables.t]\nfiles = "t.csv"\nunit = "id"\n'
        f"max_groups_per_unit = {groups}\nmax_rows_per_group = 1\n\n[tables.t.columns]\n"
        f'id = {{ type = "int64" }}\nk = {{ type = "string" }}\n{columns}\n'
    )
    sums = ", ".join(f"SUM(x{i}) AS s{i}" for i in range(aggregates))
    command = [demur, "explain", "--project", folder, "--format", "json", "--epsilon", "1", "--delta", "1e-6"]
    done = subprocess.run([*command, f"SELECT k, {sums} FROM t GROUP BY k"], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        sys.exit(done.stderr)
    items = json.loads(done.stdout)["items"]
    return max(item["standard_deviation"] for item in items if item["what"].startswith("sum"))


def opendp(aggregates, groups):
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    frame = pl.LazyFrame({"id": [1], "k": ["a"], **{f"x{i}": [1] for i in range(aggregates)}})
    limits = [dp.polars.Bound(by=["k"], per_group=1, num_groups=groups)]
    context = dp.Context.compositor(
        data=frame,
        privacy_unit=dp.unit_of(contributions=limits, identifier=pl.col("id")),
        privacy_loss=dp.loss_of(epsilon=1.0, delta=1e-6),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=["k"], max_length=1 << 24, max_groups=1 << 13)],
    )
    query = context.query().truncate_per_group(1, by=["k"]).truncate_num_groups(groups, by=["k"], keep="first")
    sums = [pl.col(f"x{i}").fill_null(0).dp.sum((0, 1)) for i in range(aggregates)]
    scales = query.group_by("k").agg(dp.len(), *sums).summarize()
    return math.sqrt(2) * max(scales.filter(pl.col("aggregate") == "Sum")["scale"])


def split(aggregates, groups):
    """An equal part of ε for each aggregate and for the keys."""
    return math.sqrt(2) * groups * (aggregates + 1)


def cells(demur, folder):
    """Prints the table, and returns its figures."""
    folder.mkdir(parents=True, exist_ok=True)
    print("\nStandard deviation of one sum (ε 1, δ 1e-6, private keys)\n")
    print(f"{'sums':>5}{'groups':>8}{'demur':>10}{'OpenDP':>10}{'equal split':>13}")
    found = []
    for aggregates in AGGREGATES:
        for groups in GROUPS:
            mine = ours(demur, folder, aggregates, groups)
            others = {"opendp": opendp(aggregates, groups), "split": split(aggregates, groups)}
            print(f"{aggregates:5}{groups:8}{mine:10.2f}{others['opendp']:10.2f}{others['split']:13.2f}")
            found.append({"aggregates": aggregates, "groups": groups, "demur": mine, **others})
    worse = [cell for cell in found if cell["demur"] > min(cell["opendp"], cell["split"])]
    print("worse than somebody in no cell" if not worse else f"WORSE than somebody in {len(worse)} cells")
    return found
