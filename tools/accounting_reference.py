"""Reference values for the accountant's tests: delta(epsilon), epsilon(delta), Rényi divergences.

Run `python3 tools/accounting_reference.py` from the project's root (`pip install python-flint`
first); it rewrites `crates/accounting/tests/data/reference.json`.

demur integrates the transform of a composed loss over one contour in the complex plane,

    delta(e) = 1/2 pi i  int  K(z) exp(-z e) / (z (z + 1)) dz.

Nothing here does. Every value comes from the definition,

    delta(e) = P[L > e] - exp(e) Q[L > e],    or the same as    E_P (1 - exp(e - L))+,

on the law of the loss L itself, by the route that suits the mechanisms:

    formula   one mechanism: its two tails in closed form
    order     zcdp: the best order, where a derivative vanishes
    atoms     discrete laws: multiplied out like polynomials, then summed
    coins     a sampled coin: a binomial sum
    splines   Laplace and relatives: multiplied out into truncated powers, integrated exactly
    normals   Gaussian and discrete laws: a sum of Gaussian formulas, one for each atom
    curve     two sampled Gaussians: one integral along the curve where the losses add up to e
    curves    the same beside discrete laws, one for each atom
    panels    sampled Laplace: the density of the sum, piece by piece, convolved by quadrature
    place     a group on a sample, one use: the tails beyond the best place, found by bisection
    halves    sampled discrete laws: all sums, in two lists that are laid beside each other
    tails     everything smooth: each tail by Gil-Pelaez from its characteristic function

The first six are enclosed: Arb's balls contain the true value, and precision is raised
until 33 digits are certain. An epsilon is enclosed by delta's values on both sides of it. (The order
of zcdp and the place of a group are only near the best one, to 60 digits or more; the value depends on the square of that.)
The last ones but `place` are quadratures or lists that are cut off; each is done twice, with other steps, ranges and contours, and
the two must agree to 31 digits.

Where sampling makes the two directions differ, P has the record ("remove") or Q has it
("add"); the value is the larger one, and both are recorded unless one is negligible.
"""
import bisect
import functools
import json
import math
import re
import time
from collections import defaultdict
from fractions import Fraction
from typing import Callable, NamedTuple

from flint import acb, acb_mat, arb, arb_mat, arb_poly, ctx, fmpq

PATH = "crates/accounting/tests/data/reference.json"
DIGITS = 30  # written
SURE_BITS = 110  # known, of an enclosed value: 33 digits
SAME_BITS = 103  # on which two quadratures agree: 31 digits


def number(x):
    """A fraction as a ball at the present precision."""
    x = Fraction(x)
    return arb(fmpq(x.numerator, x.denominator))


def fraction(x):
    """The middle of a ball, exactly."""
    middle = x.mid().fmpq()
    return Fraction(int(middle.p), int(middle.q))


def above(x):
    """P[N > x] for a standard normal N."""
    return (x / arb(2).sqrt()).erfc() / 2


def bell(z, sigma):
    """The density of N(0, sigma^2), also at complex places."""
    return (-z * z / (2 * sigma * sigma)).exp() / (sigma * (2 * arb.pi()).sqrt())


# ---------------------------------------------------------------------------------------------
# Mechanisms, and the loss language: with fractions for numbers it is Python.


class Gaussian(NamedTuple):
    """L is N(mu^2/2, mu^2) under P and N(-mu^2/2, mu^2) under Q; here mu^2."""

    square: Fraction


class Atoms(NamedTuple):
    """Finitely many losses: `law()` is {loss: P[L = loss]}; what lacks to 1 is an infinite loss.

    `tail` bounds what was cut off of an infinite law, as a multiple of 2^-precision.
    """

    law: Callable
    tail: int = 0


class Spread(NamedTuple):
    """Atoms at -half and half and a constant density between, in the geometric mean of P and Q.

    The geometric mean M has dP = exp(l/2) dM and dQ = exp(-l/2) dM: it treats both alike.
    `law()` is (weight of each atom, density, P[L infinite]).
    """

    half: Fraction
    law: Callable


class Sampled(NamedTuple):
    """P is the mixture (1 - rate) Q' + rate P', and Q = Q'; its loss is ln(1 - rate + rate exp(L'))."""

    rate: Fraction
    inner: tuple


class Gathered(NamedTuple):
    """P mixes 0 to `people` times the move of the noise, as they are in the sample each by chance; Q has none of them."""

    people: int
    rate: Fraction
    inner: tuple


class Concentrated(NamedTuple):
    """Known only by its Rényi divergences, at most rho times the order."""

    rho: Fraction


class Loss:
    """Mechanisms with counts."""

    def __init__(self, parts):
        self.parts = parts

    def __add__(self, other):
        return Loss(self.parts + other.parts)

    def __mul__(self, count):
        return Loss([(mechanism, n * int(count)) for mechanism, n in self.parts])

    def only(self, *kinds):
        return all(isinstance(mechanism, kinds) for mechanism, _ in self.parts)

    def single(self):
        """The mechanism, if there is one and it is used once."""
        return self.parts[0][0] if [n for _, n in self.parts] == [1] else None


def one(mechanism):
    return Loss([(mechanism, 1)])


def gaussian(sigma=None, sensitivity=Fraction(1), variance=None):
    return one(Gaussian(sensitivity**2 / (variance or sigma**2)))


def laplace(scale=None, sensitivity=Fraction(1), epsilon=None):
    """Where the noise is outside of [0, sensitivity] the loss is plus or minus e0; inside it falls linearly."""
    e0 = epsilon or sensitivity / scale

    def law():
        share = (-number(e0) / 2).exp() / 2
        return share, share / 2, arb(0)

    return one(Spread(e0, law))


def truncated_laplace(scale, bound, sensitivity=Fraction(1)):
    """Densities n exp(-|x|/scale) on [-bound, bound], and shifted; P alone reaches below sensitivity - bound."""
    e0 = sensitivity / scale
    half = min(e0, (2 * bound - sensitivity) / scale)

    def law():
        n = 1 / (2 * number(scale) * (1 - (-number(bound / scale)).exp()))
        middle = n * (-number(e0) / 2).exp() * number(scale)  # of densities, per unit of x / scale
        inside = bound > sensitivity
        atom = middle * (1 - (-number((bound - sensitivity) / scale)).exp()) if inside else arb(0)
        # P of [-bound, sensitivity - bound], which may reach beyond the peak at 0
        top = number((sensitivity - bound) / scale)
        mass = top.exp() if inside else 2 - (-top).exp()
        return atom, middle / 2, n * number(scale) * (mass - (-number(bound / scale)).exp())

    return one(Spread(half, law))


def exponential(epsilon):
    """The worst loss of bounded range: dP = c exp(l/2) dl on [-epsilon, epsilon]."""
    return one(Spread(epsilon, lambda: (arb(0), 1 / (4 * (number(epsilon) / 2).sinh()), arb(0))))


def randomized_response(epsilon, categories=Fraction(2)):
    def law():
        odds = number(epsilon).exp()
        total = odds + int(categories) - 2 + 1
        return {epsilon: odds / total, Fraction(0): (int(categories) - 2) / total, -epsilon: 1 / total}

    return one(Atoms(law))


def pure(epsilon):
    """No mechanism of this guarantee is worse than a coin of this guarantee."""
    return randomized_response(epsilon)


def approx(epsilon, delta):
    def law():
        odds, rest = number(epsilon).exp(), number(1 - delta)
        return {epsilon: rest * odds / (1 + odds), -epsilon: rest / (1 + odds)}

    return one(Atoms(law))


def unary_encoding(epsilon):
    """The two bits that differ are (1, 0), (0, 1) or equal; the true one is kept with 1/2."""

    def law():
        odds = number(epsilon).exp()
        return {epsilon: odds / (1 + odds) / 2, Fraction(0): arb(1) / 2, -epsilon: 1 / (1 + odds) / 2}

    return one(Atoms(law))


def table(weights, loss):
    """The law of the loss at x, of P[X = x] proportional to the weights of all x."""
    total, law = sum(weights.values(), arb(0)), defaultdict(arb)
    for x, weight in weights.items():
        if loss(x) is not None:
            law[loss(x)] += weight / total
    return law


def discrete_laplace(scale=None, sensitivity=Fraction(1), epsilon=None):
    """Geometric tails give one atom each, so that only the whole numbers from 0 to sensitivity are listed."""
    scale, shift = scale or sensitivity / epsilon, int(sensitivity)

    def law():
        ratio = (-1 / number(scale)).exp()
        end = 1 / (1 - ratio)  # 1 + ratio + ratio^2 + ...
        weights = {x: ratio**x * (end if x in (0, shift) else 1) for x in range(shift + 1)}
        return table(weights, lambda x: (shift - 2 * x) / scale)

    return one(Atoms(law))


def truncated_discrete_laplace(scale, bound, sensitivity=Fraction(1)):
    bound, shift = int(bound), int(sensitivity)

    def law():
        weights = {x: (-abs(x) / number(scale)).exp() for x in range(-bound, bound + 1)}
        return table(weights, lambda x: (abs(x - shift) - abs(x)) / scale if x >= shift - bound else None)

    return one(Atoms(law))


def discrete_gaussian(sigma=None, sensitivity=Fraction(1), variance=None):
    variance, shift = variance or sigma**2, int(sensitivity)

    def law():
        # beyond the reach weights are below 2^-(precision + 64), and so is all of P and Q there
        reach = math.isqrt(int(2 * variance * (ctx.prec + 64) * 7 // 10)) + shift + 2
        weights = {x: (-(x * x) / number(2 * variance)).exp() for x in range(-reach, reach + 1)}
        return table(weights, lambda x: Fraction(shift * (shift - 2 * x)) / (2 * variance))

    return one(Atoms(law, tail=1))


def zcdp(rho):
    return one(Concentrated(rho))


def subsampled(rate, loss):
    return one(Sampled(rate, loss.single()))


def group(size, loss):
    """Additive noise against a group: the sensitivity grows with it."""
    inner = loss.single()
    if isinstance(inner, Sampled):
        return one(Gathered(int(size), inner.rate, inner.inner))
    if isinstance(inner, Gaussian):
        return one(Gaussian(inner.square * size**2))
    return laplace(epsilon=inner.half * size)  # of a Laplace mechanism


LANGUAGE = {
    mechanism.__name__: mechanism
    for mechanism in [
        gaussian, laplace, truncated_laplace, exponential, randomized_response, pure, approx, unary_encoding,
        discrete_laplace, truncated_discrete_laplace, discrete_gaussian, zcdp, subsampled, group,
    ]
} | {"Fraction": Fraction}


@functools.cache
def read(text):
    exact = re.sub(r"(?<![\w.])\d+(\.\d+)?(e-?\d+)?", lambda match: f"Fraction('{match[0]}')", text)
    return eval(exact, LANGUAGE)


# ---------------------------------------------------------------------------------------------
# Routes. Each makes profiles, one for each direction that matters: functions of epsilon (a
# fraction) to delta and exp(epsilon) Q[L > epsilon], which is minus the slope of delta.


def tails_of(mechanism, e):
    """(P[L > e], Q[L > e]) of one mechanism, for any real e."""
    match mechanism:
        case Gaussian(square):
            mu = number(square).sqrt()
            return above(e / mu - mu / 2), above(e / mu + mu / 2)
        case Atoms(law):
            table = law()
            higher = [(loss, p) for loss, p in table.items() if number(loss) > e]
            lost = 1 - sum(table.values(), arb(0))
            if lost.contains(0):
                lost = arb(0)
            return (lost + sum((p for _, p in higher), arb(0)),
                    sum((p * (-number(loss)).exp() for loss, p in higher), arb(0)))
        case Spread(half, law):
            atom, flat, lost = law()
            half = number(half)
            if e >= half:
                return lost, arb(0)
            if e < -half:
                return arb(1), 1 - lost
            p = atom * (half / 2).exp() + 2 * flat * ((half / 2).exp() - (e / 2).exp())
            q = atom * (-half / 2).exp() + 2 * flat * ((-e / 2).exp() - (-half / 2).exp())
            return lost + p, q


def formula(loss):
    """One mechanism, or one on a sample, straight from its tails.

    The loss of a sample is above e where the loss l inside has exp(l) > (exp(e) - 1 + rate) / rate.
    """
    mechanism = loss.single() or Gaussian(sum(m.square * n for m, n in loss.parts))

    def difference(p, q, e):
        return p - e.exp() * q, e.exp() * q

    def plain(e):
        e = number(e)
        return difference(*tails_of(mechanism, e), e)

    def sampled(e):
        """P and Q of the losses above e."""
        rate = number(mechanism.rate)
        odds = (e.exp() - 1 + rate) / rate
        if odds < 0:
            return arb(1), arb(1)
        p, q = tails_of(mechanism.inner, odds.log())
        return (1 - rate) * q + rate * p, q

    def remove(e):
        e = number(e)
        return difference(*sampled(e), e)

    def add(e):
        e = number(e)
        p, q = sampled(-e)
        return difference(1 - q, 1 - p, e)

    return {"remove": remove, "add": add} if isinstance(mechanism, Sampled) else {"": plain}


def lattice(loss):
    """What all losses are made of: the least possible loss, and a step that divides all differences."""
    least, step = Fraction(0), Fraction(0)
    for mechanism, n in loss.parts:
        if isinstance(mechanism, Spread):
            losses = [-mechanism.half, mechanism.half]
        else:
            losses = list(mechanism.law())
        least += n * min(losses)
        for x in losses:
            x -= min(losses)
            step = Fraction(math.gcd(step.numerator * x.denominator, x.numerator * step.denominator),
                            step.denominator * x.denominator)
    return least, step


def polynomial(law, step):
    least = min(law)
    coefficients = [arb(0)] * (int((max(law) - least) / step) + 1)
    for loss, p in law.items():
        coefficients[int((loss - least) / step)] += p
    return arb_poly(coefficients)


def multiplied(loss, step):
    """The law of the sum of discrete losses on the lattice, and what lies beyond all of them."""
    law, finite, cut = arb_poly([1]), arb(1), 0
    for mechanism, n in loss.parts:
        factor = polynomial(mechanism.law(), step)
        law *= factor**n
        cut += n * mechanism.tail
        total = sum(factor.coeffs(), arb(0))
        if not total.contains(1):
            finite *= total**n
    return law.coeffs(), 1 - finite + arb(0, arb(cut) * arb(2) ** -ctx.prec)


def atoms(loss):
    """Sum of independent discrete losses: their laws multiply like polynomials, exactly."""
    least, step = lattice(loss)
    law, lost = multiplied(loss, step)

    def profile(e):
        p, q = lost, arb(0)
        first = max(math.floor((e - least) / step) + 1, 0)
        for index in range(first, len(law)):
            share = law[index]
            p += share
            q += share * number(e - least - index * step).exp()
        return p - q, q

    return {"": profile}


def coins(loss):
    """A sampled coin used n times: k heads have the probability and the loss of a binomial law."""
    (mechanism, n), = loss.parts
    rate = number(mechanism.rate)
    faces = {}
    for l, p in mechanism.inner.law().items():
        if not p.is_zero():
            q = p * (-number(l)).exp()
            faces[l] = ((1 - rate) * q + rate * p, q)
    tail, head = faces[min(faces)], faces[max(faces)]

    def binomial(first, second, e):
        """The first law against the second."""
        e, p, q = number(e), arb(0), arb(0)
        for k in range(n + 1):
            ways = arb.bin_uiui(n, k)
            a = ways * head[first] ** k * tail[first] ** (n - k)
            b = ways * head[second] ** k * tail[second] ** (n - k)
            if a > e.exp() * b:
                p, q = p + a, q + b
        return p - e.exp() * q, e.exp() * q

    return {"remove": lambda e: binomial(0, 1, e), "add": lambda e: binomial(1, 0, e)}


def splines(loss):
    """Atoms and constant densities, multiplied out.

    A constant density on [-h, h] is the difference of two truncated powers (s - l)+^0, at s = h
    and s = -h, and such functions convolve to others of their kind:

        (s - l)+^(i-1) / (i-1)!  *  (r - l)+^(j-1) / (j-1)!  =  (s + r - l)+^(i+j-1) / (i+j-1)!

    An atom at s is the power 0 of the family. So the geometric mean of a composition is a
    polynomial in two letters, a shift and a power, and each of its terms has an exact integral:

        int (exp(l/2) - exp(e - l/2))+ (s - l)+^(j-1)/(j-1)! dl  =  exp(e/2) S_j(s - e),
        S_j(t) = sum over odd n of 2 (t/2)^n (t^j n! / (n + j)!) / n!  =  S_(j+2)/4 + t^(j+1)/(j+1)!,

    S_0 = 2 sinh(t/2). The terms cancel by many digits, which precision pays for.
    """
    least, step = lattice(loss)
    powers, finite = [arb_poly([1])], arb(1)  # powers[j]: the shifts of the terms with power j
    for mechanism, n in loss.parts:
        if isinstance(mechanism, Spread):
            atom, flat, lost = mechanism.law()
            both = arb_poly([0, 1]).left_shift(int(2 * mechanism.half / step) - 1)
            ends, edges = atom * (both + 1), flat * (both - 1)
            finite *= (1 - lost) ** n
        else:
            law = mechanism.law()
            ends = polynomial({l: p * (-number(l) / 2).exp() for l, p in law.items()}, step)
            edges, total = arb_poly([]), sum(law.values(), arb(0))
            finite *= arb(1) if total.contains(1) else total**n
        powers = times(powers, to_the(ends, edges, n))
    columns = [p.coeffs() for p in powers]
    columns = [[column[i] if i < len(column) else None for column in columns]
               for i in range(max(map(len, columns)))]
    factorials = [arb(1)]
    for n in range(1, len(powers) + 3):
        factorials.append(factorials[-1] * n)

    def profile(e):
        value, fall = arb(0), arb(0)
        for index, column in enumerate(columns):
            shift = least + index * step
            if shift > e:
                s = integrals(number(shift - e), len(column), factorials)  # s[j + 1] = S_j
                for j, coefficient in enumerate(column):
                    if coefficient is not None:
                        value += coefficient * s[j + 1]
                        fall += coefficient * s[j]
        root = (number(e) / 2).exp()
        return 1 - finite + root * value, root * (fall - value / 2)

    return {"": profile}


def times(left, right):
    product = [arb_poly([]) for _ in range(len(left) + len(right) - 1)]
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            product[i + j] += a * b
    return product


def to_the(ends, edges, n):
    """(ends + u edges)^n by powers of u."""
    if edges.degree() < 0:
        return [ends**n]
    if ends.degree() < 0:
        return [arb_poly([])] * n + [edges**n]
    high = [arb_poly([1])]
    low = [arb_poly([1])]
    for _ in range(n):
        high.append(high[-1] * ends)
        low.append(low[-1] * edges)
    return [arb.bin_uiui(n, j) * high[n - j] * low[j] for j in range(n + 1)]


def integrals(t, count, factorials):
    """S_(-1)(t) to S_count(t), from the highest down: all terms are positive."""
    term = t ** (count + 1) / factorials[count + 1]
    pair = []
    for j in (count, count + 1):
        if j > count:
            term = term * t / (j + 1)
        total, summand, n = arb(0), term, 1
        while not summand < term * arb(2) ** -(ctx.prec + 8):
            total += summand
            summand *= t * t / (4 * (n + j + 1) * (n + j + 2))
            n += 2
        pair.append(total + arb(0, summand * 2))  # ratios have fallen below 1/2 by then
    s = [None] * (count + 1) + pair  # s[j + 1] = S_j
    power = t**count / factorials[count]
    for j in range(count - 1, -2, -1):
        s[j + 1] = s[j + 3] / 4 + power
        power = power * (j + 1) / t
    return s


def normals(loss):
    """Given the discrete losses, what remains is Gaussian: delta is a mean of Gaussian formulas at e - l."""
    square = sum(m.square * n for m, n in loss.parts if isinstance(m, Gaussian))
    rest = Loss([(m, n) for m, n in loss.parts if not isinstance(m, Gaussian)])
    least, step = lattice(rest)
    law, lost = multiplied(rest, step)

    def profile(e):
        value, fall = lost, arb(0)
        for index, p in enumerate(law):
            remaining = number(e - least - index * step)
            above_p, above_q = tails_of(Gaussian(square), remaining)
            value += p * (above_p - remaining.exp() * above_q)
            fall += p * remaining.exp() * above_q
        return value, fall

    return {"": profile}


def place(loss):
    """A group on a sample: the best event is everything beyond the place where P is exp(e) times Q."""
    people, rate, inner = loss.single()
    rate = number(rate)
    weights = [arb.bin_uiui(people, j) * rate**j * (1 - rate) ** (people - j) for j in range(people + 1)]
    if isinstance(inner, Gaussian):
        move, first, last = number(inner.square).sqrt(), arb(-400), arb(400)
        tail = above

        def ratio(j, t):
            return (j * move * t - (j * move) ** 2 / 2).exp()
    else:
        move = number(inner.half)
        first, last = arb(0), people * move

        def tail(x):
            return (-x).exp() / 2 if x > 0 else 1 - x.exp() / 2

        def ratio(j, t):
            return max(-j * move, min(j * move, 2 * t - j * move), key=fraction).exp()

    def mixed(t):
        return sum((w * ratio(j, t) for j, w in enumerate(weights)), arb(0))

    def beyond(e):
        """P and Q beyond the place where their ratio is exp(e)."""
        low, high = first, last
        for _ in range(ctx.prec // 2 + 40):
            t = ((low + high) / 2).mid()
            if mixed(t).mid() < e.exp().mid():
                low = t
            else:
                high = t
        return sum((w * tail(low - j * move) for j, w in enumerate(weights)), arb(0)), tail(low)

    def remove(e):
        if mixed(last) < number(e).exp():  # all of P is below
            return arb(0), arb(0)
        p, q = beyond(number(e))
        return p - number(e).exp() * q, number(e).exp() * q

    def add(e):
        if mixed(first) > (-number(e)).exp():
            return arb(0), arb(0)
        p, q = beyond(-number(e))
        return (1 - q) - number(e).exp() * (1 - p), number(e).exp() * (1 - p)

    return {"remove": remove, "add": add}


def order(loss):
    """exp((a-1)(rho a - e)) (1 - 1/a)^a / (a - 1) at the order a where its derivative vanishes.

    The derivative of its logarithm is rho (2a - 1) - e + ln(1 - 1/a), which grows in a.
    """
    rho = sum(m.rho * n for m, n in loss.parts)

    def profile(e):
        rho_, e_ = number(rho), number(e)
        a = growing_root(lambda a: rho_ * (2 * a - 1) - e_ + (1 - 1 / a).log(),
                         lambda a: 2 * rho_ + 1 / (a * (a - 1)))
        value = ((a - 1) * (rho_ * a - e_) + a * (1 - 1 / a).log()).exp() / (a - 1)
        return value, value * (a - 1)

    return {"": profile}


def best_epsilon(loss, delta):
    """rho a + ln(1 - 1/a) - ln(a delta) / (a - 1), least where rho (a - 1)^2 + ln(a delta) = 0, which grows in a."""
    rho = number(sum(m.rho * n for m, n in loss.parts))
    delta = number(delta)
    a = growing_root(lambda a: rho * (a - 1) ** 2 + (a * delta).log(), lambda a: 2 * rho * (a - 1) + 1 / a)
    return rho * a + (1 - 1 / a).log() - (a * delta).log() / (a - 1)


def growing_root(f, slope):
    """Where a growing function on (1, oo) vanishes; a few bisections, then Newton."""
    low, high = arb(1), arb(2)
    while f(high) < 0:
        high = 1 + 2 * (high - 1)
    for _ in range(60):
        middle = ((low + high) / 2).mid()
        low, high = (middle, high) if f(middle) < 0 else (low, middle)
    for _ in range(10):
        high = (high - f(high) / slope(high)).mid()
    return high


# ---------------------------------------------------------------------------------------------
# Routes by quadrature. They take a style, and are done in two styles.


class Style(NamedTuple):
    """How to do a quadrature: what must not change the result."""

    digits: int  # absolute, of each tail
    finer: Fraction  # factor on the steps
    wider: Fraction  # factor on the ranges
    lift: Fraction  # of the contour, as a part of the way to the singularity


STYLES = Style(46, Fraction(1), Fraction(1), Fraction(1, 2)), Style(48, Fraction(6, 7), Fraction(9, 8), Fraction(4, 9))


def decimals(digits):
    return digits * math.log(10)


def moment(mechanism, a):
    """E_Q exp(a L), for any real a, on the real axis; enclosed but for Gaussian tails of 1e-90."""
    a_ = number(a)
    match mechanism:
        case Gaussian(square):
            return (a_ * (a_ - 1) * number(square) / 2).exp()
        case Atoms(law):
            return sum((p * ((a_ - 1) * number(l)).exp() for l, p in law().items()), arb(0))
        case Spread(half, law):
            atom, flat, _ = law()
            half, shift = number(half), a_ - arb(1) / 2
            body = 2 * half if shift.is_zero() else 2 * (shift * half).sinh() / shift
            return 2 * atom * (shift * half).cosh() + flat * body
        case Sampled(rate, Gaussian(square)):
            q, sigma = number(rate), 1 / number(square).sqrt()

            def integrand(x, analytic):
                ratio = 1 - q + q * ((2 * x - 1) / (2 * sigma**2)).exp()
                return bell(x, sigma) * (a_ * ratio.log(analytic=analytic)).exp()

            reach = 21 * sigma
            ends = [-reach, arb(0), max(a_, arb(1)), max(a_, arb(1)) + reach]
            return sum((acb.integral(integrand, low, high).real for low, high in zip(ends, ends[1:])), arb(0))


@functools.cache
def log_moment(mechanism, a):
    ctx.prec = 64
    return float(moment(mechanism, a).log())


def window(loss, style):
    """A bound on |L - e| that fails with less than 10^-digits under P and exp(-e) 10^-digits under Q; by Chernoff.

    It holds for all e of interest: up to where delta is 1e-10 or less, by Chernoff again.
    """
    def total(a):
        return sum(n * log_moment(mechanism, a) for mechanism, n in loss.parts)

    slopes = [Fraction(s) for s in (1, 2, 3, 4, 6, 8, 12, 16, 24, 50, 100)]
    e = min((total(1 + s) + decimals(10)) / s for s in slopes)
    slack = decimals(style.digits) + e
    return e + max(min((total(start + sign * s) + slack) / s for s in slopes)
                   for start in (0, 1) for sign in (-1, 1))


def characteristic(mechanism, style, start, step, count):
    """E_P exp(i t L) and E_Q exp(i t L) at t = start, start + step, ..."""
    if isinstance(mechanism, Sampled):
        return sampled_characteristic(mechanism, style, start, step, count)
    times = [start + n * step for n in range(count)]
    match mechanism:
        case Gaussian(square):
            half = number(square) / 2
            p = [acb(-half * t * t, half * t).exp() for t in times]
        case Atoms(law):
            table = [(number(l), p) for l, p in law().items()]
            p = [sum((w * acb(0, l * t).exp() for l, w in table), acb(0)) for t in times]
        case Spread(half, law):
            atom, flat, _ = law()
            p = []
            for t in times:
                z = acb(arb(1) / 2, t)
                p.append(2 * atom * (z * number(half)).cosh() + 2 * flat * (z * number(half)).sinh() / z)
    return p, [x.conjugate() for x in p]  # Q is P with the sign of the loss changed


def sampled_characteristic(mechanism, style, start, step, count):
    """The two expectations over x, by the trapezoid rule on a line above the real axis.

    The loss ln(1 - q + q exp((2x - 1) / 2 sigma^2)) is analytic for |Im x| < pi sigma^2. Above the
    real axis its imaginary part is positive, which damps exp(i t L) for every t > 0, so
    the same nodes serve them all. The trapezoid rule is wrong by exp(-2 pi d / h), d the
    distance to where the integrand is no longer tame. With exp(i t L) at equally spaced t,
    sums over nodes are a product of matrices.
    """
    q, sigma = number(mechanism.rate), 1 / number(mechanism.inner.square).sqrt()
    lift = arb.pi() * sigma**2 * number(style.lift)
    growth = 5 * float(sigma) ** 2  # exponent of |bell| at the singularity
    h = number(Fraction(float(2 * arb.pi() * lift) / (decimals(style.digits) + growth)).limit_denominator(10**6))
    h *= number(style.finer)
    reach = float(sigma) * math.sqrt(2 * (decimals(style.digits) + growth)) * float(style.wider)
    weights_p, weights_q, losses = [], [], []
    for k in range(-int(reach / float(h)), int((reach + 1) / float(h)) + 1):
        x = acb(k * h, lift)
        here, there = bell(x, sigma), bell(x - 1, sigma)
        weights_p.append(h * ((1 - q) * here + q * there))
        weights_q.append(h * here)
        losses.append(acb(0, 1) * (1 - q + q * ((2 * x - 1) / (2 * sigma**2)).exp()).log())
    block = math.isqrt(count - 1) + 1
    first, jump, small = ([(l * t).exp() for l in losses] for t in (start, step * block, step))
    rows = [[w * f for w, f in zip(weights, first)] for weights in (weights_p, weights_q)]
    rows = [row for pair in zip(*(progression(row, jump, block) for row in rows)) for row in pair]
    columns = progression([acb(1)] * len(losses), small, block)
    product = acb_mat(rows) * acb_mat(columns).transpose()
    entries = product.tolist()
    return ([x for row in entries[0::2] for x in row][:count], [x for row in entries[1::2] for x in row][:count])


def progression(row, ratio, count):
    rows = [row]
    for _ in range(count - 1):
        rows.append([(x * r).mid() for x, r in zip(rows[-1], ratio)])
    return rows


def tails(loss, style):
    """P[L > e] and Q[L > e], each from its own characteristic function f on the real axis (Gil-Pelaez):

        P[L > e]  =  1/2 + 1/pi int_0^oo Im(f(t) exp(-i t e)) / t dt.

    The midpoint rule with step h = 2 pi / w replaces the sign of L - e, whose integral
    this is, by a square wave that agrees with it wherever |L - e| < w. So the rule errs by no
    more than P[|L - e| > w], and the integral may end where f has vanished.
    """
    ctx.prec = int(style.digits * 3.33) + 80
    w = window(loss, style) * float(style.wider)
    ctx.prec = int(style.digits * 3.33) + 80
    h = 2 * arb.pi() / number(Fraction(w).limit_denominator(1000))

    def product(start, step, count):
        p, q = [acb(1)] * count, [acb(1)] * count
        for mechanism, n in loss.parts:
            p_, q_ = characteristic(mechanism, style, start, step, count)
            p = [a * b**n for a, b in zip(p, p_)]
            q = [a * b**n for a, b in zip(q, q_)]
        return p, q

    end, small = h, math.exp(-decimals(style.digits))
    while any(float(x.abs_upper()) > small for f in product(end, h, 1) for x in f):
        end *= number(Fraction(9, 8))
    count = int(float(end / h) * float(style.wider)) + 1
    p, q = product(h / 2, h, count)
    finite = product(arb(0), h, 1)[0][0].real  # P[L finite], and Q as well

    def both(e):
        """P and Q of e < L < oo."""
        turn, phase = acb(0, -h * e).exp(), acb(0, -h * e / 2).exp()
        above_p, above_q = arb(0), arb(0)
        for n, (in_p, in_q) in enumerate(zip(p, q)):
            above_p += (in_p * phase).imag / (2 * n + 1)
            above_q += (in_q * phase).imag / (2 * n + 1)
            phase = (phase * turn).mid()  # a ball would grow with every turn
        return finite / 2 + 2 * above_p / arb.pi(), finite / 2 + 2 * above_q / arb.pi()

    def remove(e):
        e = number(e)
        p_, q_ = both(e)
        return 1 - finite + p_ - e.exp() * q_, e.exp() * q_

    def add(e):
        """With P and Q exchanged the loss changes its sign."""
        e = number(e)
        p_, q_ = (finite - x for x in both(-e))
        return 1 - finite + q_ - e.exp() * p_, e.exp() * p_

    sampled = any(isinstance(m, Sampled) for m, _ in loss.parts)
    return {"remove": remove, "add": add} if sampled else {"": remove}


def curve(loss, style):
    """Two sampled Gaussians: P[L1 + L2 > c] is an integral over x1 of P[x2 > y], where y(x1) ends the sum at c.

    Characteristic functions of so few steps vanish too slowly. Both x1 and y are logarithms
    where the other one ends; with L1 = c/2 + s, L2 = c/2 - s and s = S tanh(u), S = c/2 - ln(1 - q),
    the integrand is analytic around the whole line of u, and the trapezoid rule does it.
    """
    (mechanism, n), = loss.parts
    assert n == 2
    ctx.prec = int(style.digits * 3.33) + 80
    q, sigma = number(mechanism.rate), 1 / number(mechanism.inner.square).sqrt()
    h = number(Fraction(1, 45) * style.finer)

    def place(gap):
        """x where the loss is gap above its infimum ln(1 - q)."""
        return sigma**2 * ((1 - q) * gap.expm1() / q).log() + arb(1) / 2

    def beyond(x):
        """P and Q of one step above x."""
        return (1 - q) * above(x / sigma) + q * above((x - 1) / sigma), above(x / sigma)

    def density(x):
        return (1 - q) * bell(x, sigma) + q * bell(x - 1, sigma), bell(x, sigma)

    def both(c):
        """P and Q of L1 + L2 > c."""
        radius = c / 2 - (1 - q).log()
        if not radius > 0:
            return arb(1), arb(1)
        p, q_ = beyond(place(2 * radius))  # there any x2 will do
        # leftwards the density falls like a Gaussian in 2 sigma^2 u, rightwards dx1 like exp(-2u)
        left = -20 / min(float(sigma), 1) * float(style.wider)
        right = 62 * float(style.wider)
        for k in range(int(left / float(h)), int(right / float(h))):
            u = k * h
            up = 2 * radius / (1 + (-2 * u).exp())
            down = 2 * radius / (1 + (2 * u).exp())
            speed = sigma**2 * up.exp() / up.expm1() * up * down / radius * h
            x = place(up)
            for_p, for_q = density(x)
            then_p, then_q = beyond(place(down))
            p += for_p * then_p * speed
            q_ += for_q * then_q * speed
        return p, q_

    def remove(e):
        e = number(e)
        p, q_ = both(e)
        return p - e.exp() * q_, e.exp() * q_

    def add(e):
        e = number(e)
        p, q_ = both(-e)
        return (1 - q_) - e.exp() * (1 - p), e.exp() * (1 - p)

    return {"remove": remove, "add": add}


def curves(loss, style):
    """Two sampled Gaussians beside discrete losses: a mean of what `curve` says at e - l, one for each sum l of these."""
    noise = Loss([(m, n) for m, n in loss.parts if isinstance(m, Sampled)])
    rest = Loss([(m, n) for m, n in loss.parts if not isinstance(m, Sampled)])
    each = curve(noise, style)
    least, step = lattice(rest)
    law, lost = multiplied(rest, step)

    def mean(profile):
        def at(e):
            value, fall = lost, arb(0)
            for index, p in enumerate(law):
                if not p.is_zero():
                    one_value, one_fall = profile(Fraction(e) - least - index * step)
                    value += p * one_value
                    fall += p * one_fall
            return value, fall
        return at

    return {direction: mean(profile) for direction, profile in each.items()}


def panels(loss, style):
    """Sampled Laplace: atoms at both ends of an interval [low, low + w], and an analytic density between.

    The density of a sum of n such losses is analytic on each panel [n low + m w, n low + (m+1) w].
    One more loss takes every panel to itself and to the next by fixed linear maps, here as
    matrices on values at Chebyshev nodes, from Gauss-Legendre quadrature.
    """
    (mechanism, n), = loss.parts
    ctx.prec = int(style.digits * 3.33) + 80
    q, half = number(mechanism.rate), number(mechanism.inner.half)
    atom, flat, _ = mechanism.inner.law()
    low, high = ((1 - q + q * (sign * half).exp()).log() for sign in (-1, 1))

    def density(l):
        """Of the sampled loss, under P and Q; that of the loss x inside is flat exp(x/2) and flat exp(-x/2)."""
        odds = l.exp() - 1 + q
        x = (odds / q).log()
        under_q = flat * (-x / 2).exp() * l.exp() / odds
        return (l.exp() * under_q, under_q)

    ends = []  # Q of the atoms, then P
    for sign in (-1, 1):
        under_q = atom * (-sign * half / 2).exp()
        ends.append(((1 - q + q * (sign * half).exp()) * under_q, under_q))
    return {
        "remove": convolved(low, high - low, ends[0][0], ends[1][0], lambda l: density(l)[0], n, style),
        "add": convolved(-high, high - low, ends[1][1], ends[0][1], lambda l: density(-l)[1], n, style),
    }


def convolved(low, w, at_low, at_high, density, n, style):
    """The profile of n losses with these atoms and this density of P."""
    # The density is singular at ln(1 - rate). At rate 0.1, half = 1 the error falls by 2.28 per node,
    # and 2.8 nodes make a digit. An even number: no Gauss-Legendre node then is a Chebyshev node.
    size = 2 * int(1.4 * style.digits * float(style.wider))
    nodes = [(1 + (arb.pi() * (2 * i + 1) / (2 * size)).cos()) * w / 2 for i in range(size)]
    signs = [(-1) ** i * (arb.pi() * (2 * i + 1) / (2 * size)).sin() for i in range(size)]
    legendre = [arb.legendre_p_root(size, k, weight=True) for k in range(size)]

    def basis(u):
        """The values at u of the polynomials that are 1 at one node and 0 at the others."""
        terms = [s / (u - x) for s, x in zip(signs, nodes)]
        total = sum(terms, arb(0))
        return [t / total for t in terms]

    def integral(start, end, weight, place):
        """The row of int weight(v) basis(place(v)) dv."""
        half, row = (end - start) / 2, [arb(0)] * size
        for x, share in legendre:
            v = start + half * (1 + x)
            factor = half * share * weight(v)
            row = [r + factor * b for r, b in zip(row, basis(place(v)))]
        return row

    here = [integral(arb(0), u, lambda v: density(low + v), lambda v: u - v) for u in nodes]
    there = [integral(u, w, lambda v: density(low + v), lambda v: w + u - v) for u in nodes]
    for i in range(size):
        here[i][i] += at_low
        there[i][i] += at_high
    here, there = arb_mat(here), arb_mat(there)
    base = [density(low + u) for u in nodes]
    atoms, pieces = [at_low, at_high], arb_mat(size, 1, base)
    for _ in range(n - 1):
        stay, move = (here * pieces).tolist(), (there * pieces).tolist()
        pieces = arb_mat([[a + b + atom * f for a, b, atom in zip(s + [arb(0)], [arb(0)] + m, atoms)]
                          for s, m, f in zip(stay, move, base)])
        atoms = [a * at_low + b * at_high for a, b in zip(atoms + [arb(0)], [arb(0)] + atoms)]
    pieces = pieces.transpose().tolist()
    whole = (integral(arb(0), w, lambda v: arb(1), lambda v: v), integral(arb(0), w, lambda v: (-v).exp(), lambda v: v))

    def profile(e):
        e, p, q = number(e), arb(0), arb(0)
        for m, share in enumerate(atoms):
            place = n * low + m * w
            if place > e:
                p, q = p + share, q + share * (e - place).exp()
        for m, piece in enumerate(pieces):
            place = n * low + m * w
            if place + w < e:
                continue
            rows = whole
            if place < e:
                rows = (integral(e - place, w, lambda v: arb(1), lambda v: v),
                        integral(e - place, w, lambda v: (-v).exp(), lambda v: v))
            p += sum((r * x for r, x in zip(rows[0], piece)), arb(0))
            q += sum((r * x for r, x in zip(rows[1], piece)), arb(0)) * (e - place).exp()
        return p - q, q

    return profile


# ---------------------------------------------------------------------------------------------
# Cases.

def halves(loss, style):
    """Sampled discrete laws: all sums of one half of the uses, beside all sums of the other; in whole multiples of 2^-bits."""
    (mechanism, n), = loss.parts
    ctx.prec = bits = int(style.digits * 3.33) + 80
    whole = arb(2) ** bits
    fixed = lambda x: int((x * whole).mid().floor().unique_fmpz())
    rate, negligible, faces = number(mechanism.rate), arb(10) ** -style.digits, []
    for l, p in mechanism.inner.law().items():
        q = p * (-number(l)).exp()
        p = (1 - rate) * q + rate * p
        if p > negligible or q > negligible:
            faces.append((fixed((p / q).log()), fixed(p), fixed(q)))

    def sums(uses):
        """(loss, P, Q) of every way in which the faces can come up, without those that never do."""
        found, least = [], fixed(negligible / 10**6)

        def go(index, done, run, l, p, q):
            """All that begins so; the last face came up `run` times. Equal faces are in one order, the others in all orders."""
            if done == uses:
                found.append((l, p, q))
                return
            for next_ in range(index, len(faces)):
                more, a, b = faces[next_]
                again = run + 1 if next_ == index else 1
                here = p * a * (done + 1) // again >> bits
                there = q * b * (done + 1) // again >> bits
                if here > least or there > least:
                    go(next_, done + 1, again, l + more, here, there)

        go(0, 0, 0, 0, 1 << bits, 1 << bits)
        return sorted(found)

    first, second = sums(n // 2), sums(n - n // 2)
    losses, ends = [row[0] for row in second], {}
    for index in (1, 2):
        rising, total = [0], 0
        for row in reversed(second):
            total += row[index]
            rising.append(total)
        ends[index] = rising[::-1]

    def beyond(e):
        """P and Q of the losses above e, and of the others."""
        at, p, q = fixed(number(e)), 0, 0
        for l, a, b in first:
            index = bisect.bisect_right(losses, at - l)
            p += a * ends[1][index]
            q += b * ends[2][index]
        p_all, q_all = (sum(row[i] for row in first) * ends[i][0] for i in (1, 2))
        return [arb(x) / whole / whole for x in (p, q, p_all - p, q_all - q)]

    def remove(e):
        p, q, _, _ = beyond(e)
        return p - number(e).exp() * q, number(e).exp() * q

    def add(e):
        _, _, p, q = beyond(-e)
        return q - number(e).exp() * p, number(e).exp() * p

    return {"remove": remove, "add": add}


ENCLOSED = {f.__name__: f for f in (formula, atoms, coins, splines, normals, order, place)}
QUADRATURES = {f.__name__: f for f in (curve, curves, panels, tails, halves)}


def route_of(loss):
    mechanism = loss.single()
    if loss.only(Concentrated):
        return "order"
    if loss.only(Atoms) and (mechanism is None or mechanism.tail):
        return "atoms"
    if isinstance(mechanism, Gathered):
        return "place"
    if mechanism or loss.only(Gaussian):
        return "formula"
    if loss.only(Atoms, Spread):
        return "splines"
    if loss.only(Atoms, Gaussian):
        return "normals"
    if len(loss.parts) == 1:
        (mechanism, n), = loss.parts
        if isinstance(mechanism.inner, Atoms):
            return "halves" if mechanism.inner.tail else "coins"
        if isinstance(mechanism.inner, Spread):
            return "panels"
        if n == 2:
            return "curve"
    sampled = [(m, n) for m, n in loss.parts if isinstance(m, Sampled)]
    if loss.only(Atoms, Sampled) and [n for _, n in sampled] == [2] and isinstance(sampled[0][0].inner, Gaussian):
        return "curves"
    return "tails"


@functools.lru_cache(maxsize=2)
def made(text, route, precision):
    """The enclosed profiles at a precision, kept for the next case of the same losses."""
    ctx.prec = precision
    return ENCLOSED[route](read(text))


def invert(profile, target):
    """The epsilon where delta is the target: Newton on ln(delta), within a bracket. At least 0."""
    sought = number(target)
    if not profile(Fraction(0))[0] > sought:
        return Fraction(0)
    low, high = Fraction(0), Fraction(1)
    while True:
        value, fall = profile(high)
        if not value > sought:
            break
        low, high = high, 2 * high
    x = high
    for _ in range(400):
        y = (low + high) / 2
        if value > 0 and fall > 0:
            try_ = fraction(number(x) + ((value / sought).log() * value / fall).mid())
            if low < try_ < high:
                y = try_
        if abs(y - x) < y / 2**124:
            return y
        x = y
        value, fall = profile(x)
        low, high = (x, high) if value > sought else (low, x)
    raise ArithmeticError("no convergence")


def enclosed(text, route, e=None, delta=None):
    """Delta or epsilon of each direction, proven to SURE_BITS by raising the precision."""
    precision, results = 256, {}
    while True:
        profiles = made(text, route, precision)
        for direction, profile in profiles.items():
            ctx.prec = precision
            if delta is None:
                results[direction] = profile(e)[0]
                sure = results[direction].is_zero() or results[direction].rel_accuracy_bits() >= SURE_BITS
            elif route == "order":
                results[direction] = best_epsilon(read(text), delta)
                sure = True
            else:
                x = invert(profile, delta)
                results[direction], hair, sought = number(x), x / 2**SURE_BITS, number(delta)
                sure = x == 0 or (profile(x - hair)[0] > sought and profile(x + hair)[0] < sought)
            if not sure:
                break
        else:
            return results
        precision *= 2
        if precision > 40000:
            raise ArithmeticError(f"{text}: no precision suffices")


@functools.lru_cache(maxsize=2)
def quadrature(text, route, style):
    return QUADRATURES[route](read(text), style)


def repeated(text, route, e=None, delta=None):
    """Delta or epsilon of each direction by a quadrature, in two styles that must agree."""
    results = []
    for style in STYLES:
        profiles = quadrature(text, route, style)
        ctx.prec = int(style.digits * 3.33) + 80
        results.append({direction: profile(e)[0] if delta is None else number(invert(profile, delta))
                        for direction, profile in profiles.items()})
    tolerance = arb(2) ** -SAME_BITS
    larger, found = max((abs(x.mid()) for x in results[0].values()), key=fraction), {}
    for direction, value in results[0].items():
        gap = abs(value.mid() - results[1][direction].mid())
        if gap <= abs(value.mid()) * tolerance:
            found[direction] = value
        else:  # too small beside the other direction to be resolved, or to matter
            assert abs(value.mid()) + gap < larger * tolerance, f"{text}, {direction}: {value} or {gap} away"
    return found


def written(x):
    """30 digits of the middle of a ball."""
    middle = x.mid()
    return "0" if middle.is_zero() else middle.str(DIGITS, radius=False)


def case(text, e=None, delta=None):
    """One row: delta at e, or epsilon at delta."""
    start = time.time()
    loss = read(text)
    route = route_of(loss)
    solve = enclosed if route in ENCLOSED else repeated
    found = solve(text, route, Fraction(e) if e is not None else None, Fraction(delta) if delta is not None else None)
    value = written(max(found.values(), key=lambda x: fraction(x)))
    row = {"losses": text, "find": "delta" if delta is None else "epsilon"}
    row |= {"epsilon": e, "delta": value} if delta is None else {"delta": delta, "epsilon": value}
    if "" not in found:
        row |= {direction: written(x) for direction, x in found.items()}
    row |= {"route": route, "kind": "closed" if loss.single() else "composed"}
    print(f"{time.time() - start:7.2f} s  {route:8} {text[:60]}  "
          f"{'delta' if delta is None else 'epsilon'}({e if delta is None else delta}) = {value}", flush=True)
    return row


def renyi(text, alpha):
    """Rényi divergences add up, and D_a(P|Q) = ln(E_Q exp(a L)) / (a - 1), the other one with 1 - a for a."""
    loss = read(text)
    a, found = Fraction(alpha), []
    for order_ in (a, 1 - a):
        ctx.prec = 300
        total = arb(0)
        for mechanism, n in loss.parts:
            if isinstance(mechanism, Concentrated):
                total += n * number(mechanism.rho * a * (a - 1))
            else:
                total += n * moment(mechanism, order_).log()
        found.append(total / number(a - 1))
        assert found[-1].rel_accuracy_bits() >= SURE_BITS, text
    print(f"           renyi    {text[:60]}  order {alpha}", flush=True)
    return {"losses": text, "find": "renyi", "order": alpha, "renyi": written(found[0]),
            "renyi_other": written(found[1]), "route": "moment",
            "kind": "closed" if loss.single() else "composed"}


def self_check():
    """Where two routes lead to the same place they must meet, and known formulas must hold."""
    ctx.prec = 256
    tiny = arb(2) ** -200

    def same(a, b):
        assert abs(a - b) < tiny, (a, b)

    for text in ("laplace(scale=2)", "pure(1)", "approx(1, 1e-6)", "exponential(0.5)", "truncated_laplace(2, 3)",
                 "truncated_laplace(2, 0.75)", "unary_encoding(2)", "randomized_response(1, 4)"):
        loss = read(text)
        for e in (Fraction(0), Fraction(1, 5), Fraction(2, 5), Fraction(9, 10)):
            for a, b in zip(formula(loss)[""](e), splines(loss)[""](e)):
                same(a, b)
            if loss.only(Atoms):
                same(atoms(loss)[""](e)[0], splines(loss)[""](e)[0])
    e = number(Fraction(1, 5))
    # the textbook's formulas for a Laplace, an exponential and a sampled Laplace mechanism
    same(formula(read("laplace(scale=2)"))[""](Fraction(1, 5))[0], 1 - ((e - arb(1) / 2) / 2).exp())
    same(formula(read("exponential(0.5)"))[""](Fraction(1, 5))[0],
         (1 - ((e - arb(1) / 2) / 2).exp()) ** 2 / (1 - (-arb(1) / 2).exp()))
    sampled, rate = formula(read("subsampled(0.5, laplace(scale=1))")), arb(1) / 2
    inner = (1 + e.expm1() / rate).log()
    same(sampled["remove"](Fraction(1, 5))[0], rate * (1 - ((inner - 1) / 2).exp()))
    beta = 1 - e.exp() * (1 - rate)
    same(sampled["add"](Fraction(1, 5))[0], beta * (1 - (((rate * e.exp() / beta).log() - 1) / 2).exp()))
    # a square has a closed form: E_Q exp(2 L) = 1 + q^2 (exp(1 / sigma^2) - 1)
    same(moment(read("subsampled(0.01, gaussian(sigma=1))").single(), Fraction(2)), 1 + arb(1).expm1() / 10000)
    # sampling everybody is no sampling: panels are splines
    style = Style(40, Fraction(1), Fraction(1), Fraction(1, 2))
    for a, b in zip(panels(read("subsampled(1, laplace(scale=1))*3"), style)["remove"](Fraction(1, 5)),
                    splines(read("laplace(scale=1)*3"))[""](Fraction(1, 5))):
        assert abs(a - b) < arb(10) ** -38, (a, b)


def deltas(text, *epsilons):
    return [lambda e=e: case(text, e=e) for e in epsilons]


def epsilons(text, *targets):
    return [lambda d=d: case(text, delta=d) for d in targets]


def renyis(text, *orders):
    return [lambda a=a: renyi(text, a) for a in orders]


MIXED = " + ".join(
    f"gaussian(sigma={10 + i}) + laplace(scale={20 + i}) + subsampled(0.01, gaussian(sigma={1 + i / 25:g}))"
    f" + randomized_response(epsilon={i / 100:g})" for i in range(1, 26))


def single_mechanisms():
    yield from deltas("gaussian(sigma=1)", "0", "1e-9", "0.5", "1", "3", "10", "30")
    yield from deltas("gaussian(sigma=0.1)", "0", "30", "100", "300")
    yield from deltas("gaussian(sigma=1000000)", "0", "1e-12", "1e-6", "2e-5")
    yield from deltas("gaussian(sigma=2, sensitivity=3)", "1", "8")
    yield from deltas("gaussian(variance=2)", "1")
    yield from epsilons("gaussian(sigma=1)", "0.1", "1e-6", "1e-10", "1e-100", "1e-300")
    yield from epsilons("gaussian(sigma=50)", "0.5", "1e-6", "1e-100", "1e-300")
    yield from deltas("group(3, gaussian(sigma=5))", "1", "4")
    yield from epsilons("group(3, gaussian(sigma=5))", "1e-6")
    yield from deltas("laplace(scale=1)", "0", "1e-9", "0.5", "0.999999", "1", "2")
    yield from deltas("laplace(scale=100)", "0", "0.009")
    yield from epsilons("laplace(scale=1)", "0.1", "1e-6", "1e-10")
    yield from deltas("group(2, laplace(scale=10))", "0.1")
    yield from deltas("exponential(0.5)", "0", "0.1", "0.499")
    yield from epsilons("exponential(0.5)", "1e-6", "1e-10")
    yield from deltas("pure(1)", "0", "1e-9", "0.5", "1", "2")
    yield from deltas("pure(0.001)", "0.0005")
    yield from deltas("pure(20)", "0", "19.5")
    yield from epsilons("pure(1)", "1e-6")
    yield from deltas("approx(1, 1e-6)", "0", "0.5", "1", "5")
    yield from epsilons("approx(1, 1e-6)", "1e-5")
    yield from deltas("randomized_response(epsilon=1)", "0.25")
    yield from deltas("randomized_response(epsilon=1, categories=4)", "0", "0.25", "0.9")
    yield from epsilons("randomized_response(epsilon=3, categories=1000)", "1e-3")
    yield from deltas("unary_encoding(2)", "0", "0.5", "1.9")
    yield from deltas("discrete_laplace(scale=2)", "0", "0.25")
    yield from deltas("discrete_laplace(scale=2, sensitivity=3)", "0", "0.5", "1", "1.25")
    yield from epsilons("discrete_laplace(scale=2, sensitivity=3)", "1e-6")
    yield from deltas("discrete_gaussian(sigma=3)", "0", "0.1", "1", "3")
    yield from deltas("discrete_gaussian(sigma=0.5)", "1", "10")
    yield from deltas("discrete_gaussian(sigma=2, sensitivity=3)", "1", "5")
    yield from epsilons("discrete_gaussian(sigma=3)", "1e-6", "1e-10", "1e-30")
    yield from deltas("truncated_laplace(scale=1, bound=14)", "0", "0.5", "1", "3")
    yield from deltas("truncated_laplace(scale=2, bound=3, sensitivity=2)", "0", "0.5", "0.99")
    yield from deltas("truncated_laplace(scale=2, bound=0.75)", "0", "0.2", "0.3")
    yield from epsilons("truncated_laplace(scale=1, bound=14)", "1e-5")
    yield from deltas("truncated_discrete_laplace(scale=2, bound=30)", "0", "0.3", "0.5")
    yield from deltas("subsampled(0.01, gaussian(sigma=1))", "0", "0.001", "0.005", "0.5", "3")
    yield from epsilons("subsampled(0.01, gaussian(sigma=1))", "1e-3", "1e-6", "1e-10", "1e-100")
    yield from deltas("subsampled(0.5, gaussian(sigma=3))", "0.1", "1")
    yield from deltas("subsampled(0.1, laplace(scale=1))", "0", "0.05", "0.15")
    yield from deltas("subsampled(0.1, pure(1))", "0", "0.05", "0.15")
    yield from deltas("zcdp(0.1)", "0", "1", "3", "10")
    yield from epsilons("zcdp(0.1)", "1e-6", "1e-10", "1e-100")
    yield from epsilons("zcdp(0.0001)", "1e-6")
    yield from epsilons("zcdp(2)", "1e-6")
    yield from deltas("zcdp(0.01)*10", "1")


def compositions():
    for n in (2, 100, 1000, 10000):
        yield from epsilons(f"gaussian(sigma=5)*{n}", "1e-6", "1e-10")
    yield from deltas("gaussian(sigma=5)*100", "0", "5", "20")
    yield from deltas("gaussian(sigma=5)*10000", "100", "250", "300")
    yield from epsilons("gaussian(sigma=5)*3 + gaussian(sigma=0.7) + gaussian(sigma=2, sensitivity=1/3)*40", "1e-6")
    yield from deltas("pure(0.1)*2", "0", "0.05", "0.1", "0.15")
    yield from deltas("pure(0.1)*10", "0.2", "0.55")
    yield from epsilons("pure(0.1)*10", "1e-6")
    yield from deltas("pure(0.1)*1000", "0", "10", "20", "50", "99.95")
    yield from epsilons("pure(0.1)*1000", "1e-6", "1e-10", "1e-100")
    yield from epsilons("pure(0.01)*1000", "1e-6")
    yield from deltas("pure(0.1)*3 + pure(0.25)*7 + approx(0.5, 1e-7)*2", "0", "0.5", "1", "2", "3.2")
    yield from epsilons("pure(0.1)*3 + pure(0.25)*7 + approx(0.5, 1e-7)*2", "1e-6")
    yield from epsilons("pure(1/3)*20 + pure(0.1)*20", "1e-6", "1e-10")
    yield from deltas("approx(0.1, 1e-8)*50", "1", "3", "6")
    yield from deltas("randomized_response(epsilon=1)*20", "5")
    yield from epsilons("randomized_response(epsilon=1, categories=4)*50", "1e-6", "1e-10")
    yield from epsilons("unary_encoding(2)*10", "1e-6")
    yield from deltas("unary_encoding(2)*10", "5")
    for n in (2, 10, 100):
        yield from deltas(f"discrete_laplace(scale=2, sensitivity=3)*{n}", "1")
        yield from epsilons(f"discrete_laplace(scale=10)*{n}", "1e-6")
    for n in (2, 10, 100):
        yield from deltas(f"discrete_gaussian(sigma=3)*{n}", "1")
        yield from epsilons(f"discrete_gaussian(sigma=3)*{n}", "1e-6", "1e-10")
    yield from epsilons("discrete_gaussian(sigma=0.5, sensitivity=2)*5", "1e-6")
    yield from deltas("truncated_discrete_laplace(scale=2, bound=30)*10", "1")
    yield from deltas("subsampled(0.1, pure(1))*20", "0", "0.1", "0.5", "1.2")
    yield from epsilons("subsampled(0.1, pure(1))*200", "1e-6", "1e-10")
    for n in (2, 3, 5, 10, 20):
        yield from deltas(f"laplace(scale=1)*{n}", "0.5", f"{n - 0.25}")
        yield from epsilons(f"laplace(scale=1)*{n}", "1e-6")
    for n in (2, 5, 20):
        yield from deltas(f"laplace(scale=10)*{n}", "0", "0.15")
        yield from epsilons(f"laplace(scale=100)*{n}", "1e-6")
    yield from epsilons("laplace(scale=1)*100", "1e-6", "1e-10", "1e-20")
    yield from epsilons("group(2, laplace(scale=10))*5", "1e-6")
    for n in (2, 5, 20):
        yield from deltas(f"exponential(0.5)*{n}", "0.25")
        yield from epsilons(f"exponential(0.5)*{n}", "1e-6")
    yield from epsilons("exponential(0.1)*100", "1e-6", "1e-10")
    for n in (2, 3, 5):
        yield from deltas(f"truncated_laplace(scale=1, bound=14)*{n}", "0.5", "1.5")
        yield from deltas(f"truncated_laplace(scale=2, bound=0.75)*{n}", "0.2")
    yield from deltas("truncated_laplace(scale=2, bound=3, sensitivity=2)*5", "1")
    yield from epsilons("truncated_laplace(scale=1, bound=30)*5", "1e-6", "1e-10")
    yield from deltas("laplace(scale=1)*5 + exponential(0.5)*3 + pure(0.25)*4 + approx(0.5, 1e-7)", "1", "4")
    yield from epsilons("laplace(scale=1)*5 + exponential(0.5)*3 + pure(0.25)*4 + approx(0.5, 1e-7)", "1e-6")
    yield from deltas("gaussian(sigma=3)*10 + pure(0.1)*3", "0", "1", "4")
    yield from epsilons("gaussian(sigma=3)*10 + pure(0.1)*3", "1e-6", "1e-10", "1e-100")
    yield from epsilons("gaussian(sigma=3)*10 + discrete_laplace(scale=5)*10 + approx(0.1, 1e-9)", "1e-6")


def quadratures():
    yield from epsilons("gaussian(sigma=3) + laplace(scale=1)*10", "1e-6", "1e-10")
    yield from deltas("gaussian(sigma=3) + laplace(scale=1)*10", "0", "3")
    yield from epsilons("gaussian(sigma=5)*100 + laplace(scale=10)*10 + truncated_laplace(scale=1, bound=20)"
                        " + pure(0.1)*3", "1e-6")
    for rate, sigma, n, e in (
        ("0.01", "1", 2, "0.5"), ("0.01", "1", 10, "0.5"), ("0.01", "1", 100, "1"), ("0.01", "1", 1000, "1"),
        ("0.01", "1", 10000, "5"), ("0.001", "0.8", 100000, "1.5"), ("0.1", "2", 100, "2"), ("0.05", "1.5", 500, "3"),
    ):
        text = f"subsampled({rate}, gaussian(sigma={sigma}))*{n}"
        yield from deltas(text, e)
        yield from epsilons(text, "1e-6", "1e-10")
    yield from deltas("subsampled(0.01, gaussian(sigma=1))*2", "0.01")
    yield from deltas("subsampled(0.01, gaussian(sigma=1))*1000", "0", "0.1")
    for n, e in ((10, "0.5"), (200, "3")):
        yield from deltas(f"subsampled(0.1, laplace(scale=1))*{n}", e)
        yield from epsilons(f"subsampled(0.1, laplace(scale=1))*{n}", "1e-6", "1e-10")
    yield from epsilons("gaussian(sigma=5)*20 + subsampled(0.01, gaussian(sigma=1))*1000 + laplace(scale=10)*10", "1e-6")
    yield from deltas(MIXED, "1")
    yield from epsilons(MIXED, "1e-6", "1e-10")


def few_samples():
    for rate, sigma, n, delta in (
        ("0.01", "1", 2, "1e-3"),
        ("0.1", "2", 5, "1e-6"),
        ("0.3", "4", 3, "1e-9"),
        ("0.01", "1", 40, "1e-12"),
        ("0.1", "2", 20, "1e-12"),
        ("0.3", "4", 10, "1e-3"),
        ("0.05", "0.6", 2, "1e-6"),
        ("0.001", "0.7", 2, "1e-9"),
        ("0.1", "2", 40, "1e-6"),
    ):
        yield from epsilons(f"subsampled({rate}, gaussian(sigma={sigma}))*{n}", delta)


def rare_samples():
    """Rates up to 1e-3: hardly any use has the record, and almost all of the loss is next to its least value."""
    for rate, sigma, n, delta in (
        ("0.001", "1", 2, "1e-9"),
        ("0.001", "5", 2, "1e-12"),
        ("0.0001", "0.7", 2, "1e-9"),
        ("0.0001", "2", 2, "1e-5"),
        ("0.0001", "5", 2, "1e-9"),
        ("0.00001", "0.5", 2, "1e-6"),
        ("0.00001", "1", 2, "1e-12"),
        ("0.000001", "0.5", 2, "1e-9"),
        ("0.000001", "1", 2, "1e-8"),
        ("0.000001", "3", 2, "1e-12"),
        ("0.001", "0.5", 2, "1e-3"),
        ("0.001", "1", 1000, "1e-9"),
        ("0.001", "5", 1000, "1e-12"),
        ("0.001", "2", 1000, "1e-6"),
        ("0.0001", "1", 1000, "1e-9"),
        ("0.0001", "2", 1000, "1e-3"),
        ("0.001", "2", 200, "1e-9"),
        ("0.001", "5", 200, "1e-6"),
    ):
        yield from epsilons(f"subsampled({rate}, gaussian(sigma={sigma}))*{n}", delta)
    for rate, sigma, n, e in (
        ("0.001", "1", 2, "0.05"),
        ("0.0001", "0.7", 2, "0.001"),
        ("0.0001", "2", 2, "0.0003"),
        ("0.000001", "0.5", 2, "0.01"),
        ("0.000001", "5", 2, "1e-6"),
        ("0.001", "1", 1000, "0.1"),
        ("0.0001", "1", 1000, "0.01"),
        ("0.001", "5", 1000, "0.02"),
    ):
        yield from deltas(f"subsampled({rate}, gaussian(sigma={sigma}))*{n}", e)


def divergences():
    for text in (
        "gaussian(sigma=5)*100", "laplace(scale=1)", "laplace(scale=10)*1000", "pure(1)",
        "randomized_response(epsilon=1, categories=4)", "unary_encoding(2)", "exponential(0.5)*10",
        "discrete_laplace(scale=2, sensitivity=3)", "discrete_gaussian(sigma=3)*10",
        "subsampled(0.01, gaussian(sigma=1))", "subsampled(0.1, gaussian(sigma=2))*100",
        "gaussian(sigma=5)*10 + laplace(scale=10)*3 + pure(0.1)*3", "zcdp(0.1)",
    ):
        yield from renyis(text, "1.5", "2", "8", "32")


def long_compositions():
    yield from epsilons("laplace(scale=10)*1000", "1e-6", "1e-10")
    yield from deltas("laplace(scale=10)*1000", "15")


def sampled_divergences():
    """Strong signals and rare samples, in both directions."""
    for rate, sigma, orders in (
        ("0.01", "1", ("3", "16", "64")),
        ("0.1", "1", ("2", "16", "32.5")),
        ("0.01", "0.2", ("2", "3")),
        ("0.1", "0.3", ("4",)),
        ("0.5", "0.5", ("1.1", "2")),
        ("0.001", "0.5", ("3", "128")),
        ("0.001", "2", ("1.1", "2", "8", "64")),
        ("0.001", "5", ("1.1", "2", "16")),
        ("0.01", "5", ("256",)),
        ("0.0001", "1", ("2", "5")),
    ):
        yield from renyis(f"subsampled({rate}, gaussian(sigma={sigma}))", *orders)
    yield from renyis("subsampled(0.001, gaussian(sigma=2))*1000 + laplace(scale=10)*3", "2", "8")


def long_lattices():
    yield from epsilons("pure(1)*5000", "1e-9")
    yield from epsilons("pure(1)*10000", "1e-12")
    yield from deltas("pure(1)*5000", "2679")


def many_steps():
    """Losses that are multiples of different steps, so that their sums lie on no common lattice, or on a very fine one."""
    atoms_ = "pure(0.3)*3 + randomized_response(epsilon=1.1, categories=7)*2 + discrete_laplace(scale=3.7)*4"
    yield from deltas(atoms_, "0", "0.7", "2.9", "4")
    yield from epsilons(atoms_, "1e-3", "1e-6", "1e-10")
    yield from epsilons("discrete_gaussian(sigma=1.5)*2 + pure(0.115)*9 + unary_encoding(0.7)", "1e-6", "1e-10")
    yield from deltas("discrete_gaussian(sigma=1.5)*2 + pure(0.115)*9 + unary_encoding(0.7)", "1", "5")
    yield from epsilons("laplace(epsilon=0.667) + laplace(scale=40.8)*4 + laplace(epsilon=0.0346)*3", "1e-6", "1e-10")
    yield from deltas("laplace(epsilon=0.667) + laplace(scale=40.8)*4 + laplace(epsilon=0.0346)*3", "0.1", "0.6")
    yield from epsilons("truncated_laplace(scale=1, bound=30)*2 + pure(0.117)*5 + discrete_laplace(scale=7)*3", "1e-6")
    yield from deltas("truncated_laplace(scale=1, bound=30)*2 + pure(0.117)*5 + discrete_laplace(scale=7)*3", "1")
    yield from epsilons("discrete_gaussian(sigma=2) + pure(0.3)*2 + laplace(epsilon=1.3)*2", "1e-6", "1e-10")


def few_sampled_laplaces():
    for rate, scale, n, delta in (("0.25", "2", 3, "1e-6"), ("0.001", "5", 2, "1e-9")):
        yield from epsilons(f"subsampled({rate}, laplace(scale={scale}))*{n}", delta)
    yield from deltas("subsampled(0.3, laplace(scale=2.5))*4", "0.45")


def small_deltas():
    """Laplace noise near its largest loss, and beside discrete Gaussian noise that goes far beyond that."""
    yield from epsilons("laplace(epsilon=1.3)*2", "1e-15", "1e-30")
    yield from epsilons("laplace(scale=3)*3", "1e-15")
    yield from deltas("laplace(epsilon=1)*4", "3.999", "3.999999")
    yield from deltas("laplace(epsilon=2)*3 + discrete_gaussian(sigma=4)", "8")
    yield from deltas("discrete_gaussian(sigma=4)*5 + laplace(scale=5)*2", "4")
    yield from epsilons("laplace(epsilon=2)*3 + discrete_gaussian(sigma=4)", "1e-9", "1e-20")
    yield from epsilons("truncated_laplace(scale=2, bound=40)*3 + randomized_response(epsilon=0.2, categories=5)*2", "1e-7")


def rarer_sampled_laplaces():
    for rate, scale, n, delta in (("0.02", "1", 3, "1e-9"), ("0.004", "2", 2, "1e-6"), ("0.0005", "5", 2, "1e-7")):
        yield from epsilons(f"subsampled({rate}, laplace(scale={scale}))*{n}", delta)


def sampled_beside_atoms():
    """Two uses of Gaussian noise on a sample beside losses of two or three values."""
    yield from deltas("subsampled(0.1, gaussian(sigma=1.5))*2 + pure(0.5)*2", "0.3", "1", "1.5")
    yield from deltas("subsampled(0.002, gaussian(sigma=3))*2 + randomized_response(epsilon=1.5, categories=4)", "1.4", "1.51")
    yield from deltas("subsampled(0.02, gaussian(sigma=1))*2 + pure(1) + approx(0.3, 1e-7)", "0.7", "2")
    yield from epsilons("subsampled(0.01, gaussian(sigma=2))*2 + pure(0.7)", "1e-5", "1e-10")


def few_samples_far_out():
    """Two uses, and a delta that only outputs nobody ever sees decide on."""
    for rate, sigma, delta in (
        ("0.01", "3.16", "1e-20"), ("0.001", "2.29", "1e-20"), ("0.004", "7", "1e-20"), ("0.1", "1", "1e-20"),
        ("0.0001", "1", "1e-15"), ("0.02", "5", "1e-25"), ("0.001", "0.8", "1e-18"),
    ):
        yield from epsilons(f"subsampled({rate}, gaussian(sigma={sigma}))*2", delta)
    yield from deltas("subsampled(0.01, gaussian(sigma=1.2))*2", "2", "3")


def sampled_discrete_gaussians():
    """More sums than can be listed by hand, on no lattice."""
    yield from deltas("subsampled(0.01, discrete_gaussian(sigma=2))*10", "0.05", "0.1")
    yield from deltas("subsampled(0.1, discrete_gaussian(sigma=1))*12", "0.5", "2")


def groups_on_samples():
    yield from deltas("group(2, subsampled(0.1, gaussian(sigma=10)))", "0.01", "0.1")
    yield from deltas("group(3, subsampled(0.01, gaussian(sigma=1)))", "0.1", "1", "5")
    yield from deltas("group(5, subsampled(0.5, laplace(scale=2)))", "0.1", "1", "2")
    yield from deltas("group(2, subsampled(0.001, laplace(scale=0.8)))", "0.001", "0.01")
    yield from epsilons("group(3, subsampled(0.1, gaussian(sigma=2)))", "1e-5", "1e-10", "1e-100")
    yield from epsilons("group(3, subsampled(0.5, laplace(scale=0.8)))", "1e-5")
    yield from epsilons("group(10, subsampled(0.01, laplace(epsilon=0.1)))", "1e-6")


def main():
    start, rows = time.time(), []
    self_check()
    print(f"{time.time() - start:7.2f} s  the routes agree with each other", flush=True)
    for family in (single_mechanisms, divergences, compositions, quadratures, few_samples, rare_samples, long_compositions,
                   sampled_divergences, long_lattices, many_steps, few_sampled_laplaces, small_deltas, rarer_sampled_laplaces,
                   sampled_beside_atoms, sampled_discrete_gaussians, groups_on_samples, few_samples_far_out):
        rows += [compute() for compute in family()]
        with open(PATH, "w") as file:
            file.write("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    print(f"{len(rows)} cases, {time.time() - start:.0f} s")


if __name__ == "__main__":
    main()
