"""Reference values for the tests, from mpmath at 200 digits.

Run `python3 tools/reference.py` from the project's root; it rewrites the files
under `crates/*/tests/data/`. mpmath shares no code and no formula with demur:
the normal law comes from its erfc, exponentials from its exp, optima from
bisection on the definition.
"""
import random
from fractions import Fraction

from mpmath import mp, mpf, erfc, exp, floor, log, sqrt, pi

mp.dps = 200


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


DIGITS = {"exact": 200, "noise": 330}


def write(name, header, rows, room="exact"):
    with open(f"crates/{room}/tests/data/{name}.csv", "w") as f:
        f.write(f"# {header}; mpmath, {DIGITS[room]} digits, tools/reference.py\n")
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


# The noise room: laws of the tables, from their definitions, at 1100 bits.

mp.prec = 1100


def number(fraction):
    return mpf(fraction.numerator) / fraction.denominator


def floor_log2(fraction):
    guess = fraction.numerator.bit_length() - fraction.denominator.bit_length()
    return guess if fraction >= Fraction(2) ** guess else guess - 1


def laplace_tables(scale):
    """The digits a sampler of this scale is made of: (index_bits, step, radix, signed).

    Radix 0 is the highest digit, which has no end.
    """
    bits = max(floor_log2(46 * scale), 1) + 1
    count, index_bits = 1, bits + 2
    if index_bits > 11:
        count = -(-(bits + 2) // 10)
        index_bits = max(-(-(bits + 2) // count), 3)
    step, tables = 1, []
    for index in range(count):
        radix = 2 ** (index_bits - 1) - 1 if index == 0 else 2 ** index_bits - 1
        tables.append((index_bits, step, radix if index + 1 < count else 0, index == 0))
        step *= radix
    return tables


def laplace_digit(scale, step, radix, signed):
    """Pr[digit j of |Z|, sign], summed over everything above and below the digit.

    Signed, the digit is the lowest one of G, where Z = G or Z = -1 - G.
    """
    ratio = exp(-1 / number(scale))
    power = exp(-step / number(scale))
    above = 1 - exp(-step * radix / number(scale)) if radix else 1
    j, weight = 0, 1
    while not radix or j < radix:
        if signed:  # sum over q of tanh(1/2t) r^(j + Rq), and r times that
            share = weight * (1 - ratio) / (1 + ratio) / above
            yield share
            yield share * ratio
        else:
            yield weight * (1 - power) / above
        j, weight = j + 1, weight * power


def heights(height, signed, limit=None):
    """0, -1, 1, -2, 2, ... with weights height(|m|), or 0, 1, 2, ... without signs."""
    total, m = mpf(0), 0
    while limit is None or m <= limit:
        term = height(m) * (2 if signed and m else 1)
        total += term
        m += 1
        if term < mpf(2) ** -1090:
            break
    m = 0
    while limit is None or m <= limit:
        for _ in range(2 if signed and m else 1):
            yield height(m) / total
        m += 1


def gaussian_table(variance):
    """(index_bits, width_log2 or None): straight from a table, or by buckets."""
    index_bits = -(-max(floor_log2(variance) + 10, 2) // 2)
    if index_bits <= 12:
        return index_bits, None
    return 10, floor_log2(variance) // 2 - 5


def gaussian_law(variance, width_log2):
    square = number(variance)
    if width_log2 is None:
        return heights(lambda m: exp(-m * m / (2 * square)), True)
    return heights(lambda m: exp(-mpf(m << width_log2) ** 2 / (2 * square)), False)


def truncated_law(scale, bound):
    return heights(lambda m: exp(-m / number(scale)), True, bound)


def laws():
    """Every table that is tested: name, index bits, and a function giving its law."""
    for text in LAPLACE_SCALES:
        scale = Fraction(text)
        for index_bits, step, radix, signed in laplace_tables(scale):
            arguments = (scale, step, radix, signed)
            yield f"laplace,{text},{step},{radix}", index_bits, (laplace_digit, arguments)
    for text in GAUSSIAN_VARIANCES:
        variance = Fraction(text)
        index_bits, width_log2 = gaussian_table(variance)
        name = "direct" if width_log2 is None else width_log2
        yield f"gaussian,{text},{name},", index_bits, (gaussian_law, (variance, width_log2))
    for text, bound in TRUNCATED:
        index_bits = (2 * bound + 1).bit_length()
        yield f"truncated,{text},{bound},", index_bits, (truncated_law, (Fraction(text), bound))


LAPLACE_SCALES = [str(Fraction(1, 2 ** 20)), "1/100", "1/2", "1", "7/3", "10", "1000",
                  str(2 ** 20), str(10 ** 9), str(2 ** 40), str(2 ** 60)]
GAUSSIAN_VARIANCES = [str(Fraction(1, 2 ** 40)), "1/100", "1", "49/4", "100", "5000", "40000",
                      str(10 ** 20), str(Fraction(2 ** 82 * 99, 100)), str(2 ** 100)]
TRUNCATED = [(str(Fraction(1, 2 ** 20)), 3), ("1/2", 1), ("2", 10), ("7/3", 300), ("1000", 20),
             (str(2 ** 60), 1000)]


def hexadecimal(words):
    return " ".join(f"{word:016x}" for word in words)


def words_of(value, count):
    return [value >> 64 * i & (2 ** 64 - 1) for i in reversed(range(count))]


def around(boundary, word_counts):
    """Uniform numbers that follow the boundary for so many words, then leave it.

    Followed by zeros the number stays below; followed by ones it goes above, unless
    the boundary itself goes on with ones.
    """
    for count in word_counts:
        prefix = words_of(int(floor(boundary * mpf(2) ** (64 * count))), count)
        yield prefix + [0]
        yield prefix + [2 ** 64 - 1]


def value_of(words):
    return mpf(sum(word << 64 * i for i, word in enumerate(reversed(words)))) / mpf(2) ** (64 * len(words))


table_rows, remainder_rows = [], []
randomness = random.Random(1)
for name, index_bits, (law, arguments) in laws():
    capacity = 2 ** index_bits - 1
    # All outcomes until what is left could not decide any of the numbers tried.
    probabilities, left = [], mpf(1)
    for p in law(*arguments):
        probabilities.append(p)
        left -= p
        if left < mpf(2) ** -700 and len(probabilities) > 2:
            break
    stored = min(capacity, len(probabilities))
    # A probability that only looks like 1 is below it.
    weights = [min(int(floor(p * 2 ** 64)), 2 ** 64 - 1) for p in probabilities[:stored]]
    remainder = 2 ** 64 - sum(weights)
    chosen = {0, 1, 2, 3, 7, stored // 3, stored // 2, stored - 3, stored - 2, stored - 1}
    for outcome in sorted(n for n in chosen if 0 <= n < stored and probabilities[n] > mpf(2) ** -1000):
        table_rows.append([name, str(index_bits), str(outcome), text(probabilities[outcome], 70)])

    # The remainder's law, by its definition: shares 2^64 p - w of a total of 2^64 - sum of w.
    ends, sum_ = [], mpf(0)
    for outcome, p in enumerate(probabilities):
        sum_ += p * 2 ** 64 - (weights[outcome] if outcome < stored else 0)
        ends.append(sum_ / remainder)

    def outcome_at(v):
        return next(n for n, end in enumerate(ends) if v < end)

    tried = [[2 ** 64 - 1, 2 ** 64 - 1, 2 ** 64 - 1, 0]]
    for outcome in sorted({0, 1, 5, stored // 2, stored - 1, stored + 1}):
        if outcome < len(ends) - 1 and ends[outcome] < 1:
            tried += around(ends[outcome], [2, 6])
    tried += [[randomness.getrandbits(64) for _ in range(2)] for _ in range(3)]
    if name == f"gaussian,{Fraction(2 ** 82 * 99, 100)},35,":
        tried += around(ends[999], [6])  # beyond the usual buckets
    for words in tried:
        remainder_rows.append([name, str(remainder), hexadecimal(words), str(outcome_at(value_of(words)))])

write("tables", "law, parameter, place, radix, index bits, outcome, probability", table_rows, "noise")
write("remainders", "law, parameter, place, radix, remainder of 2^64, uniform number, outcome",
      remainder_rows, "noise")

# Probabilities for coins: the first 512 binary digits.

rows = []
for x in ["1/3", "1", "1/1000000", "7/2", "20", "100", str(Fraction(1, 2 ** 70)), "200"]:
    rows.append(["exp_neg", x, "", exp(-number(Fraction(x)))])
for factor, x in [("1", "1"), ("1", "-1"), ("1", "1/1024"), ("3", "-2"), ("99", "-1/2"), ("1/7", "30"),
                  ("1000000", "-50"), ("1", "100"), ("18446744073709551615", "-1")]:
    p = 1 / (1 + number(Fraction(factor)) * exp(number(Fraction(x))))
    rows.append(["logistic", factor, x, p])
for x in ["1/3", "3/4", "1/1000000007", "999/1000"]:
    rows.append(["ratio", x, "", number(Fraction(x))])
rows = [[*row[:3], hexadecimal(words_of(int(floor(row[3] * mpf(2) ** 512)), 8))] for row in rows]
write("coins", "formula, first argument, second, the first 512 binary digits", rows, "noise")

# Acceptance of a proposed value: the words that place it and continue V, and whether V < e^-x.

rows = []
for text_ in [str(10 ** 20), str(2 ** 100), "40000"]:
    variance = Fraction(text_)
    _, width = gaussian_table(variance)
    for bucket, place, sign in [(0, 2 ** width - 1, 0), (30, 2 ** width // 2, 1), (100, 1, 0), (250, 2 ** width - 1, 1)]:
        base = bucket << width
        value = -1 - base - place if sign else base + place
        limit = exp(-number((value * value - base * base) / (2 * variance)))
        known = 63 - width
        for count in [0, 1, 2, 6]:
            prefix = int(floor(limit * mpf(2) ** (known + 64 * count)))
            first = prefix >> 64 * count << width + 1 | sign << width | place
            rest = words_of(prefix & (2 ** (64 * count) - 1), count)
            for last in [0, 2 ** 64 - 1]:
                digits = (prefix << 64) + last
                kept = mpf(digits) / mpf(2) ** (known + 64 * count + 64) < limit
                rows.append(["gaussian", text_, str(bucket), str(value), hexadecimal([first, *rest, last]), str(int(kept))])
for text_, bound in [(str(10 ** 6), 10 ** 5), (str(2 ** 60), 2 ** 59)]:
    for value in [1, -7, bound // 2, -bound]:
        limit = exp(-abs(value) / number(Fraction(text_)))
        for count in [0, 1, 6]:
            prefix = int(floor(limit * mpf(2) ** (63 + 64 * count)))
            first, rest = prefix >> 64 * count << 1, words_of(prefix & (2 ** (64 * count) - 1), count)
            for last in [0, 2 ** 64 - 1]:
                digits = (prefix << 64) + last
                kept = mpf(digits) / mpf(2) ** (127 + 64 * count) < limit
                rows.append(["truncated", text_, str(bound), str(value), hexadecimal([first, *rest, last]), str(int(kept))])
write("acceptance", "law, parameter, bucket or bound, value, words that place it and continue V, kept", rows, "noise")

# Choice of a candidate: V stretched over the weights, and the candidate it falls on.

rows = []
for rate, name in [("1/2", "10 12 3"), ("1/1000", "0 -1 -5000 -20000 -1 0"),
                   ("1", "0 -40 -44 -46 -100 0"), ("1/7", "-300..0")]:
    scores = range(-300, 0) if ".." in name else list(map(int, name.split()))
    weights = [exp((s - max(scores)) * number(Fraction(rate))) for s in scores]
    ends = [sum(weights[:i + 1]) / sum(weights) for i in range(len(scores))]
    tried = [[randomness.getrandbits(64) for _ in range(2)] for _ in range(5)]
    for outcome in sorted({0, 1, len(scores) // 2, len(scores) - 2}):
        tried += around(ends[outcome], [1, 2, 3, 6])
    for words in tried:
        chosen = next(i for i, end in enumerate(ends) if value_of(words) < end)
        rows.append([rate, name, hexadecimal(words), str(chosen)])
write("choices", "rate, scores, uniform number, chosen candidate", rows, "noise")
