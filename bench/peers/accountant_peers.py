"""dp-accounting and prv-accountant by their public interfaces; accountants.py starts this and asks.

One question per line of JSON on stdin, one answer per line on stdout. The clock is CPU time of this process; a
question is asked of a new accountant as often as fits into a tenth of a second, and the mean counts.
"""
import importlib.metadata
import json
import math
import sys
import time

import dp_accounting
import prv_accountant
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import RdpAccountant

# As in clock.rs, in seconds.
TURN = 0.1
# What prv-accountant is asked for: ε within this, and δ within a thousandth of δ, as its documentation advises.
PRV_EPSILON_ERROR = 0.01
PRV_DELTA_ERROR = 1e-3


def event(part):
    """A part as dp-accounting's accountants take it."""
    match part["mechanism"]:
        case "gaussian":
            return dp_accounting.GaussianDpEvent(part["sigma"])
        case "laplace":
            return dp_accounting.LaplaceDpEvent(scale(part))
        case "subsampled":
            noise = dp_accounting.GaussianDpEvent(part["sigma"])
            return dp_accounting.PoissonSampledDpEvent(part["rate"], noise)


def scale(part):
    return part["scale"] if "scale" in part else 1 / part["epsilon"]


def by_events(accountant, parts, delta):
    for part in parts:
        accountant.compose(event(part), part["count"])
    return {"epsilon": accountant.get_epsilon(delta)}


def by_rdp(parts, delta):
    return by_events(RdpAccountant(), parts, delta)


def by_pld(parts, delta):
    """Its default grid, and its default rounding: pessimistic, connecting the dots."""
    if any(part["mechanism"] == "randomized_response" for part in parts):
        return by_distributions(parts, delta)
    return by_events(PLDAccountant(), parts, delta)


def by_distributions(parts, delta):
    """The accountant's own steps; itself it takes randomized response only where it takes no Laplace noise."""
    total = pld.identity()
    for part in parts:
        loss = distribution(part)
        total = total.compose(loss if part["count"] == 1 else loss.self_compose(part["count"]))
    return {"epsilon": total.get_epsilon_for_delta(delta)}


def distribution(part):
    match part["mechanism"]:
        case "gaussian":
            return pld.from_gaussian_mechanism(part["sigma"])
        case "laplace":
            return pld.from_laplace_mechanism(scale(part))
        case "subsampled":
            return pld.from_gaussian_mechanism(part["sigma"], sampling_prob=part["rate"])
        case "randomized_response":
            # The truth, or else one of two at random.
            return pld.from_randomized_response(2 / (1 + math.exp(part["epsilon"])), 2)


def by_prv(parts, delta):
    """Its upper bound is its ε; the estimate lies in the middle and promises nothing."""
    mechanism = prv_accountant.PoissonSubsampledGaussianMechanism
    prvs = [mechanism(sampling_probability=part["rate"], noise_multiplier=part["sigma"]) for part in parts]
    counts = [part["count"] for part in parts]
    accountant = prv_accountant.PRVAccountant(
        prvs=prvs,
        max_self_compositions=counts,
        eps_error=PRV_EPSILON_ERROR,
        delta_error=PRV_DELTA_ERROR * delta,
    )
    lower, estimate, upper = accountant.compute_epsilon(delta, counts)
    return {"epsilon": upper, "estimate": estimate, "lower": lower}


PEERS = {"PLD": by_pld, "RDP": by_rdp, "PRV": by_prv}


def answer(question):
    ask = lambda: PEERS[question["peer"]](question["parts"], question["delta"])
    start, rounds, spent = time.process_time(), 0, 0.0
    while spent < TURN:
        result = ask()
        rounds += 1
        spent = time.process_time() - start
    return result | {"seconds": spent / rounds}


def main():
    versions = {name: importlib.metadata.version(name) for name in ("dp-accounting", "prv-accountant", "numpy", "scipy")}
    print(json.dumps(versions), flush=True)
    for line in sys.stdin:
        try:
            result = answer(json.loads(line))
        except Exception as error:  # a peer's refusal is a result
            result = {"refused": f"{type(error).__name__}: {error}"}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
