#!/usr/bin/env python3
"""Private k-means beside diffprivlib's: loss over that of scikit-learn's k-means without privacy, in one run.

    cargo build --release -p demur-learn --example clusters
    python3 bench/peers/clusters.py [--runs 5] [--mnist FOLDER]

ε = 1, and δ = 10⁻⁶ for ours; diffprivlib's is pure. Bounds are the same for both, public, and not taken from the data. Blobs: scikit-learn's `make_blobs` with
centres in [−10, 10], deviation 1, bounds ±14. Digits: scikit-learn's, 64 pixels from 0 to 16. MNIST: the training images in FOLDER, grey levels from 0
to 1, times a fixed random matrix of signs to 20 dimensions (seeded, so independent of the data), divided so that bounds are ±1. Each run draws fresh noise.
"""
import argparse
import gzip
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(Path(__file__).resolve().parent))
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PROGRAM = TARGET / "release" / "examples" / "clusters"
EPSILON, DELTA = "1", "1e-6"


def cases(mnist):
    """Name, points, k, lower and upper bound."""
    import numpy as np
    from sklearn.datasets import load_digits, make_blobs

    for seed in (0, 1):
        for n, d, k in ((100_000, 2, 16), (20_000, 10, 8)):
            points, _ = make_blobs(n, n_features=d, centers=k, cluster_std=1.0, center_box=(-10, 10), random_state=seed)
            yield f"{k} blobs in {d}-D, seed {seed}", np.clip(points, -14, 14), k, -14, 14
    yield "digits, 64-D", load_digits().data, 10, 0, 16
    if mnist:
        raw = gzip.decompress((Path(mnist) / "train-images-idx3-ubyte.gz").read_bytes())
        images = np.frombuffer(raw, np.uint8, offset=16).reshape(-1, 784) / 255.0
        signs = np.random.default_rng(1).choice([-1.0, 1.0], (784, 20)) / np.sqrt(784) / 2
        yield "MNIST, 20-D", np.clip(images @ signs, -1, 1), 10, -1, 1


def loss(points, centers):
    import numpy as np

    best = np.full(len(points), np.inf)
    for center in centers:
        best = np.minimum(best, ((points - center) ** 2).sum(1))
    return best.sum()


def ours(file, k, low, high):
    import numpy as np

    command = [PROGRAM, file, str(k), str(low), str(high), EPSILON, DELTA]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return np.array([[float(cell) for cell in line.split(",")] for line in done.stdout.split()]), done.stderr.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--mnist")
    arguments = parser.parse_args()
    try:
        import diffprivlib  # noqa: F401
    except ImportError:
        from environment import interpreter

        here = Path(__file__).resolve()
        python = interpreter(TARGET / "bench" / "clusters", here.parent / "requirements-clusters.txt", 900)
        os.execv(python, [str(python), *sys.argv])
    if not PROGRAM.exists():
        sys.exit(f"{PROGRAM} is missing; build it as the text of this script says")

    import warnings

    import numpy as np
    from diffprivlib.models import KMeans as Private
    from sklearn.cluster import KMeans

    warnings.filterwarnings("ignore")
    print(f"{'':24}{'demur':>8}{'worst':>8}{'diffprivlib':>13}")
    for name, points, k, low, high in cases(arguments.mnist):
        best = KMeans(k, n_init=10, random_state=0).fit(points).inertia_
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "points.csv"
            np.savetxt(file, points, delimiter=",", fmt="%.9g")
            mine, theirs, said = [], [], ""
            for _ in range(arguments.runs):
                centers, said = ours(file, k, low, high)
                mine.append(loss(points, centers) / best)
                bounds = (np.full(points.shape[1], low), np.full(points.shape[1], high))
                peer = Private(n_clusters=k, epsilon=float(EPSILON), bounds=bounds).fit(points)
                theirs.append(loss(points, peer.cluster_centers_) / best)
        middle = [statistics.median(ratios) for ratios in (mine, theirs)]
        print(f"{name:24}{middle[0]:8.3f}{max(mine):8.3f}{middle[1]:13.3f}   {said}", flush=True)


if __name__ == "__main__":
    main()
