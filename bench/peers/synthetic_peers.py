"""MST and AIM as published (McKenna, Miklau, Sheldon 2021; McKenna, Mullins, Sheldon, Miklau 2022), on mbi's graphical models.

The package holds the inference; how it is used is written here from the papers. Noise is drawn in doubles by numpy and the (ε, δ) is turned into ρ
by the usual conversion, as in the authors' own programs. Rows are drawn one by one from the model (`method="sample"`): the sampler that mbi
uses unless told otherwise leaves values of a group in order and loses their joint law.

    python synthetic_peers.py mst|aim FOLDER EPSILON DELTA OUT [SECONDS]

writes the rows as codes to OUT (.npy) and prints one line of JSON: seconds, megabytes, and for AIM how much of its budget was spent when SECONDS were over.
"""
import gzip
import itertools
import json
import math
import resource
import sys
import time
from pathlib import Path

import numpy as np
from mbi import Dataset, Domain, LinearMeasurement, estimation, junction_tree


def read(folder):
    sizes = json.loads((folder / "adult_discrete-domain.json").read_text())
    with gzip.open(folder / "adult_discrete.csv.gz", "rt") as file:
        names = file.readline().strip().split(",")
        codes = np.loadtxt(file, delimiter=",", dtype=int)
    return Dataset({name: codes[:, place] for place, name in enumerate(names)}, Domain.fromdict({name: sizes[name] for name in names}))


def rho(epsilon, delta):
    """The largest ρ that is (ε, δ)-private by the usual conversion (Canonne, Kamath, Steinke 2020)."""

    def failing(rho):
        best = 1.0
        for order in np.geomspace(1.0001, 1e6, 20_000):
            logarithm = (order - 1) * (order * rho - epsilon) + order * math.log1p(-1 / order) - math.log(order - 1)
            best = min(best, math.exp(min(logarithm, 0.0)))
        return best

    low, high = 0.0, epsilon + 1
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if failing(middle) <= delta else (low, middle)
    return low


class Budget:
    def __init__(self, data, random):
        self.data, self.random = data, random

    def measured(self, clique, sigma):
        counts = self.data.project(clique).datavector()
        return LinearMeasurement(counts + self.random.normal(0, sigma, counts.size), clique, sigma)

    def chosen(self, scores, epsilon, sensitivity):
        keys, values = list(scores), np.array([float(score) for score in scores.values()])
        noisy = 0.5 * epsilon / sensitivity * values + self.random.gumbel(size=values.size)
        return keys[int(noisy.argmax())]


def compressed(data, ones, sigma):
    """Values whose noisy count is below 3σ become one."""
    maps = {}
    for one in ones:
        frequent = np.asarray(one.noisy_measurement) >= 3 * sigma
        names = np.where(frequent, np.cumsum(frequent) - 1, frequent.sum())
        if (~frequent).sum() > 1:
            maps[one.clique[0]] = names.astype(int)
    return maps


def renamed(one, maps):
    names = maps.get(one.clique[0])
    if names is None:
        return one
    counts = np.bincount(names, weights=np.asarray(one.noisy_measurement))
    # The rare ones together have more noise; what one cell has is used for all, as in the authors' program the rare cell is scaled.
    scale = np.sqrt(np.bincount(names))
    return LinearMeasurement(counts / scale, one.clique, one.stddev, lambda factor: factor.datavector() / scale)


def mst(data, epsilon, delta, random):
    whole = rho(epsilon, delta)
    columns = data.domain.attrs
    budget = Budget(data, random)
    sigma = math.sqrt(3 * len(columns) / (2 * whole))
    ones = [budget.measured((column,), sigma) for column in columns]
    maps = compressed(data, ones, sigma)
    small = data.compress(maps) if maps else data
    budget = Budget(small, random)
    ones = [renamed(one, maps) for one in ones]
    model = estimation.mirror_descent(small.domain, ones, iters=2500)
    score = {
        pair: np.abs(small.project(pair).datavector() - np.asarray(model.project(pair).datavector())).sum()
        for pair in itertools.combinations(columns, 2)
    }
    each = math.sqrt(8 * (whole / 3) / (len(columns) - 1))
    group = {column: column for column in columns}
    pairs = []
    for _ in range(len(columns) - 1):
        open_pairs = {pair: value for pair, value in score.items() if group[pair[0]] != group[pair[1]]}
        pair = budget.chosen(open_pairs, each, 1.0)
        old, new = group[pair[0]], group[pair[1]]
        group = {column: new if mark == old else mark for column, mark in group.items()}
        pairs.append(pair)
    sigma = math.sqrt(3 * len(pairs) / (2 * whole))
    twos = [budget.measured(pair, sigma) for pair in pairs]
    model = estimation.mirror_descent(small.domain, ones + twos, iters=2500)
    rows = model.synthetic_data(data.records, method="sample")
    return rows.decompress(maps) if maps else rows, {}


def aim(data, epsilon, delta, random, seconds):
    """All triples and what lies below them, models of at most 80 MB."""
    start = time.time()
    whole = rho(epsilon, delta)
    columns, domain = data.domain.attrs, data.domain
    wanted = {}
    for triple in itertools.combinations(columns, 3):
        for size in (1, 2, 3):
            for part in itertools.combinations(triple, size):
                wanted.setdefault(part, 0)
    for part in wanted:
        wanted[part] = sum(len(set(part) & set(triple)) for triple in itertools.combinations(columns, 3))
    rounds = 16 * len(columns)
    sigma = math.sqrt(rounds / (2 * 0.9 * whole))
    choice = math.sqrt(8 * 0.1 * whole / rounds)
    budget = Budget(data, random)
    measured = [budget.measured((column,), sigma) for column in columns]
    used = len(columns) * 0.5 / sigma**2
    model = estimation.mirror_descent(domain, measured, iters=1000)
    truth = {part: data.project(part).datavector() for part in wanted if domain.size(part) <= 2_000_000}
    while used < whole and time.time() - start < seconds:
        if whole - used < 2 * (0.5 / sigma**2 + choice**2 / 8):
            left = whole - used
            sigma, choice = math.sqrt(1 / (2 * 0.9 * left)), math.sqrt(8 * 0.1 * left)
        used += 0.5 / sigma**2 + choice**2 / 8
        limit = 80 * min(used / whole, 1.0)
        fits = [
            part
            for part in truth
            if megabytes(domain, [m.clique for m in measured] + [part]) <= limit or any(set(part) <= set(c) for c in model.cliques)
        ]
        scores = {
            part: wanted[part]
            * (
                np.abs(truth[part] - np.asarray(model.project(part).datavector())).sum()
                - math.sqrt(2 / math.pi) * sigma * domain.size(part)
            )
            for part in fits
        }
        part = budget.chosen(scores, choice, max(wanted.values()))
        before = np.asarray(model.project(part).datavector())
        measured.append(budget.measured(part, sigma))
        model = estimation.mirror_descent(domain, measured, iters=1000)
        moved = np.abs(np.asarray(model.project(part).datavector()) - before).sum()
        if moved <= sigma * math.sqrt(2 / math.pi) * domain.size(part):
            sigma, choice = sigma / 2, choice * 2
    return model.synthetic_data(data.records, method="sample"), {"spent": min(used / whole, 1.0)}


def megabytes(domain, cliques):
    tree, _ = junction_tree.make_junction_tree(domain, [set(clique) for clique in cliques])
    return sum(domain.size(tuple(node)) for node in tree.nodes) * 8 / 2**20


def main():
    method, folder, epsilon, delta, out = sys.argv[1:6]
    data = read(Path(folder))
    random = np.random.default_rng()
    start = time.time()
    if method == "mst":
        rows, said = mst(data, float(epsilon), float(delta), random)
    else:
        rows, said = aim(data, float(epsilon), float(delta), random, float(sys.argv[6]))
    said |= {"seconds": time.time() - start, "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    columns = rows.to_dict()
    np.save(out, np.stack([np.asarray(columns[name]) for name in data.domain.attrs], axis=1))
    print(json.dumps(said))


if __name__ == "__main__":
    main()
