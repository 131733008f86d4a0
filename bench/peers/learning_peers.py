"""Models by diffprivlib and opacus, on the data and folds of demur's examples; learning.py runs this in their environments.

    learning_peers.py tables EPSILON...        table, ε, AUC: the best over encodings and strengths of regularisation
    learning_peers.py networks EPSILON EPOCHS  network, accuracy, examples a second by the clock and by the processor's time, σ/C
"""
import gzip
import sys
import time
from pathlib import Path

import numpy

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
KNOTS = 8


def hats(x, low, high):
    """Weights of the two knots next to each number."""
    place = (numpy.clip(x, low, high) - low) / (high - low) * (KNOTS - 1)
    return numpy.maximum(0, 1 - numpy.abs(place[:, None] - numpy.arange(KNOTS)[None]))


def line(x, low, high):
    return numpy.nan_to_num(2 * (numpy.clip(x, low, high) - low) / (high - low) - 1)[:, None]


def words(column, values):
    return (column.to_numpy(dtype=object)[:, None] == numpy.array(values, dtype=object)[None]).astype(float)


def adult():
    """Both encodings: straight lines, and the curves our example uses."""
    import pandas

    names = [entry for entry in (DATA / "adult" / "adult.names").read_text().splitlines() if ":" in entry][-14:]
    columns = [entry.split(":")[0] for entry in names]
    read = lambda name, skip: pandas.read_csv(DATA / "adult" / name, names=[*columns, "label"], skipinitialspace=True, skiprows=skip)
    train, test = read("adult.data.gz", 0), read("adult.test.gz", 1)
    both = pandas.concat([train, test], ignore_index=True)
    numbers = {"age": (15, 95), "fnlwgt": (0, 1.5e6), "education-num": (1, 16), "capital-gain": (0, 1e5), "capital-loss": (0, 5e3), "hours-per-week": (0, 100)}
    lines, curves = [], []
    for entry in names:
        column, described = entry.split(":")[0], entry.split(":")[1].strip().rstrip(".")
        if column not in numbers:
            block = words(both[column], [word.strip() for word in described.split(",")])
            lines.append(block)
            curves.append(block)
            continue
        x, (low, high) = both[column].to_numpy(dtype=float), numbers[column]
        lines.append(line(x, low, high))
        if column.startswith("capital"):
            curves.append(hats(numpy.log1p(x), 0, numpy.log1p(high)))
        else:
            curves.append(hats(x, low, high) if column in ("age", "hours-per-week") else line(x, low, high))
    labels = both["label"].str.startswith(">").to_numpy().astype(int)
    held = numpy.arange(len(both)) >= len(train)
    return [numpy.hstack(lines), numpy.hstack(curves)], labels, [held] * 3, len(columns)


WDBC = [
    (5, 30), (5, 40), (40, 200), (100, 2600), (0.05, 0.2), (0, 0.4), (0, 0.5), (0, 0.25), (0.1, 0.35), (0.04, 0.1),
    (0, 3), (0, 5), (0, 25), (0, 550), (0, 0.035), (0, 0.14), (0, 0.4), (0, 0.055), (0, 0.08), (0, 0.03),
    (5, 40), (10, 50), (50, 260), (150, 4300), (0.05, 0.25), (0, 1.1), (0, 1.3), (0, 0.3), (0.1, 0.7), (0.05, 0.21),
]


def folds(count):
    return [numpy.arange(count) % 5 == fold for fold in range(5)]


def wdbc():
    rows = numpy.loadtxt(DATA / "medical" / "breast_cancer_wdbc.csv", delimiter=",", skiprows=1)
    features = numpy.hstack([line(rows[:, j], low, high) for j, (low, high) in enumerate(WDBC)])
    return [features], 1 - rows[:, 30].astype(int), folds(len(rows)), len(WDBC)


def flchain():
    import pandas

    rows = pandas.read_csv(DATA / "medical" / "flchain.csv.gz")
    bounds = {"age": (50, 105), "sample.yr": (1995, 2003), "kappa": (0, 20), "lambda": (0, 20), "creatinine": (0, 10)}
    blocks = [line(rows[name].to_numpy(dtype=float), low, high) for name, (low, high) in bounds.items()]
    blocks += [words(rows["sex"], ["F", "M"]), words(rows["mgus"], [0, 1]), words(rows["flc.grp"], range(1, 11))]
    return [numpy.hstack(blocks)], rows["death"].to_numpy(dtype=int), folds(len(rows)), 8


def tables(epsilons):
    import warnings

    warnings.simplefilter("ignore")
    from diffprivlib.models import LogisticRegression
    from sklearn.metrics import roc_auc_score

    for name, load in {"adult": adult, "wdbc": wdbc, "flchain": flchain}.items():
        encodings, labels, rounds, columns = load()
        for epsilon in epsilons:
            best = 0
            for features in encodings:
                for strength in (0.01, 0.1, 1, 10):
                    scores = []
                    for held in rounds:
                        model = LogisticRegression(epsilon=float(epsilon), data_norm=columns**0.5, C=strength, max_iter=300)
                        model.fit(features[~held], labels[~held])
                        scores.append(roc_auc_score(labels[held], model.decision_function(features[held])))
                    best = max(best, sum(scores) / len(scores))
            print(name, epsilon, f"{best:.4f}", flush=True)


def digits(kind):
    read = lambda name, header: numpy.frombuffer(gzip.decompress((DATA / "mnist" / name).read_bytes()), numpy.uint8)[header:]
    images = read(f"{kind}-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28).astype(numpy.float32)
    return (images / 255 - 0.1307) / 0.3081, read(f"{kind}-labels-idx1-ubyte.gz", 8).astype(numpy.int64)


def networks(epsilon, epochs, name):
    import warnings

    warnings.simplefilter("ignore")
    import torch
    from opacus import PrivacyEngine
    from torch import nn

    torch.set_num_threads(2)
    made = {
        "cnn": nn.Sequential(
            nn.Conv2d(1, 16, 8, 2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Conv2d(16, 32, 4, 2), nn.ReLU(),
            nn.MaxPool2d(2, 1), nn.Flatten(), nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, 10),
        ),
        "mlp": nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)),
    }
    images, labels = (torch.from_numpy(array) for array in digits("train"))
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images, labels), batch_size=512)
    model = made[name]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.25, momentum=0.9)
    model, optimizer, data = PrivacyEngine(accountant="rdp").make_private_with_epsilon(
        module=model, optimizer=optimizer, data_loader=data, target_epsilon=epsilon, target_delta=1e-5, epochs=epochs, max_grad_norm=1.0
    )
    started, before, seen = time.perf_counter(), time.process_time(), 0
    for _ in range(epochs):
        for x, y in data:
            optimizer.zero_grad()
            if len(x):
                nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            seen += len(x)
    speed, work = seen / (time.perf_counter() - started), seen / (time.process_time() - before)
    model.eval()
    images, labels = (torch.from_numpy(array) for array in digits("t10k"))
    with torch.no_grad():
        right = (model(images).argmax(1) == labels).float().mean().item()
    print(name, f"{right:.4f} {speed:.0f} {work:.0f} {optimizer.noise_multiplier:.4f}", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "tables":
        tables(sys.argv[2:])
    else:
        networks(float(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
