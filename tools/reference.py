"""Reference values for the tests, from mpmath at 200 digits.

Run `python3 tools/reference.py` from the project's root; it rewrites the files
under `crates/*/tests/data/`. mpmath shares no code and no formula with demur:
the normal law comes from its erfc, exponentials from its exp, optima from
bisection on the definition.
"""
from mpmath import mp, mpf, erfc, exp, log, sqrt, pi

mp.dps = 200
DATA = "crates/exact/tests/data"


def phi_tail(x):
    return erfc(x / sqrt(2)) / 2


def mills(x):
    return phi_tail(x) * sqrt(2 * pi) * exp(x * x / 2)


def delta(eps, mu):
    """Definition: P[N > a] - e^eps P[N > b], with digits enough for any cancellation."""
    return phi_tail(eps / mu - mu / 2) - exp(eps) * phi_tail(eps / mu + mu / 2)


def sigma(eps, target):
    """Bisection to a few digits, then Newton (d delta / d mu = phi(a)) to all of them."""
    lo, hi = log(target) - 3, mpf(6)  # ln mu
    mp.dps = 30 + 2 * int(-log(target) / log(10) if eps < 1e-3 else 30)
    for _ in range(24):
        mid = (lo + hi) / 2
        if delta(eps, exp(mid)) > target:
            hi = mid
        else:
            lo = mid
    mp.dps *= 3
    mu = exp(lo)
    for _ in range(9):
        a = eps / mu - mu / 2
        value, slope = delta(eps, mu), exp(-a * a / 2) / sqrt(2 * pi)
        mu *= exp(-log(value / target) * value / (slope * mu))
    return 1 / mu


def write(name, header, rows):
    with open(f"{DATA}/{name}.csv", "w") as f:
        f.write(f"# {header}; mpmath, 200 digits, tools/reference.py\n")
        for row in rows:
            f.write(",".join(row) + "\n")


def text(x, digits=150):
    return mp.nstr(x, digits, strip_zeros=False)


write("mills", "x, Mills ratio",
      [[x, text(mills(mpf(x)))] for x in
       "0 0.001 0.1 0.5 0.99 1 1.01 1.5 2 3 4.75 6 8 12.5 20 37.5".split()])

rows = []
for e in "0 1e-9 0.01 0.5 1 3 10 100".split():
    for m in "1e-40 0.0001 0.01 0.2 1 2.5 14".split():
        mp.dps = 200
        e_, m_ = mpf(e), mpf(m)
        a = e_ / m_ - m_ / 2
        if a > 60:
            continue
        # more digits where the two terms cancel
        mp.dps = 300
        d = delta(mpf(e), mpf(m))
        if d > mpf("1e-320"):
            rows.append([e, m, text(d, 80)])
write("gaussian_delta", "epsilon, mu, delta", rows)

rows = []
for e in "0 1e-6 0.001 0.1 1 8 100".split():
    for d in "0.5 0.1 1e-3 1e-5 1e-9 1e-12 1e-30 1e-100 1e-300".split():
        mp.dps = 400
        rows.append([e, d, text(sigma(mpf(e), mpf(d)), 60)])
write("gaussian_sigma", "epsilon, delta, least sigma for sensitivity 1", rows)
