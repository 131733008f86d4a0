"""What accountants.py knows beforehand: ε of every case, with 18 digits.

With M(t) = E exp(t·loss) the divergence at ε is the integral of M(t) e^(−tε) / (t (t+1)) dt / 2πi along any
vertical line right of 0. The line goes through the saddle point, the sum is the trapezoidal rule (its error
falls exponentially in the step), and all of it has 34 digits. A quarter of an hour:

    target/venv/bin/python exact.py > exact.csv
"""
from mpmath import exp, log, mp, mpc, mpf, nstr, pi, sqrt

from accountants import CASES, DELTAS

mp.dps = 34


def gaussian(sigma):
    return lambda t: t * (t + 1) / (2 * sigma**2)


def laplace(epsilon):
    return lambda t: log(((t + 1) * exp(t * epsilon) + t * exp(-(t + 1) * epsilon)) / (2 * t + 1))


def randomized_response(epsilon):
    truth = exp(epsilon) / (exp(epsilon) + 1)
    return lambda t: log(truth * exp(t * epsilon) + (1 - truth) * exp(-t * epsilon))


def subsampled(rate, sigma):
    """The sample against no sample: the direction that loses more wherever ε > 0."""
    step = min(sigma**2, 1) / 8
    places = [step * k for k in range(-int(13 * sigma / step), int((13 * sigma + 15) / step))]
    weights = [step * exp(-(x / sigma) ** 2 / 2) / sqrt(2 * pi) / sigma for x in places]
    losses = [log(1 - rate + rate * exp((2 * x - 1) / (2 * sigma**2))) for x in places]
    moments = list(zip(weights, losses))
    return lambda t: log(sum(weight * exp((t + 1) * loss) for weight, loss in moments))


def log_moment(part):
    """ln M of a part of a case."""
    number = {name: mpf(value.numerator) / value.denominator for name, value in part.parameters.items()}
    match part.mechanism:
        case "gaussian":
            return gaussian(number["sigma"])
        case "laplace":
            return laplace(number["epsilon"] if "epsilon" in number else 1 / number["scale"])
        case "randomized_response":
            return randomized_response(number["epsilon"])
        case "subsampled":
            return subsampled(number["rate"], number["sigma"])


def saddle(moment, delta):
    """Where t minimises the Chernoff bound on ε, (ln M(t) + ln 1/δ) / t; a few digits are enough."""
    low, high = mpf("0.01"), mpf(30)
    bound = lambda t: (moment(t) - log(delta)) / t
    while high - low > mpf("0.01"):
        a, b = low + (high - low) * mpf("0.382"), low + (high - low) * mpf("0.618")
        low, high = (low, b) if bound(a) < bound(b) else (a, high)
    return low, bound(low)


def epsilon(parts, delta):
    logs = [(part.count, log_moment(part)) for part in parts]
    moment = lambda t: sum(count * f(t) for count, f in logs)
    centre, epsilon = saddle(moment, delta)
    nudge = mpf("0.001")
    width = nudge / sqrt(moment(centre + nudge) - 2 * moment(centre) + moment(centre - nudge))
    step = min(width / 5, centre * 2 * pi / 75)
    line, value, top = [], moment(centre), moment(centre)
    while value.real - top > -75 or len(line) * step < 8 * width:
        t = mpc(centre, len(line) * step)
        value = moment(t)
        line.append((t, value))
    integral = lambda f: sum(f(t, value).real / (1 if t.imag else 2) for t, value in line) * step / pi
    move = 1
    while abs(move) > mpf("1e-25"):  # Newton, on ln δ
        reached = integral(lambda t, value: exp(value - t * epsilon) / (t * (t + 1)))
        slope = integral(lambda t, value: -exp(value - t * epsilon) / (t + 1))
        move = log(reached / delta) * reached / slope
        epsilon -= move
    return epsilon


def main():
    print("# case, delta, epsilon; mpmath, 34 digits, exact.py")
    for case in CASES:
        for delta in DELTAS:
            print(f"{case.name},{delta},{nstr(epsilon(case.parts, mpf(delta)), 18)}", flush=True)


if __name__ == "__main__":
    main()
