#!/usr/bin/env python3
"""demur's accounting beside published accountants: one run, one table.

    cargo build --release && python3 bench/peers/accountants.py [--json FILE]

The peers are installed into a virtual environment beside this file (requirements.txt), once. Ours is the command
`demur account batch` of target/release, or of the path in DEMUR; without it the peers are measured alone.

Every figure is CPU time of all threads of a process, for one question: losses and δ in, ε out, from nothing. The
contestants of a question take turns, and the best turn counts. Nobody's start is counted: the peers' process has
imported everything before, and ours is asked once and 1 + R times in one process; the difference is R answers.
`process ms` is one call of the command for one question by the wall clock, start and end included.

exact.csv says what the answers should be (exact.py).
"""
import argparse
import csv
import json
import os
import resource
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from pathlib import Path

from environment import interpreter

HERE = Path(__file__).resolve().parent
COMMAND = Path(os.environ.get("DEMUR", HERE.parent.parent / "target" / "release" / "demur"))
ENVIRONMENT = HERE / "target" / "venv"

DELTAS = ["1e-6", "1e-10"]
TURNS = 3
# A contestant that has spent so many seconds on a question takes no further turn.
ENOUGH = 6.0
# A turn of ours lasts about so many seconds, and repeats a question no more often than this.
TURN = 0.3
MOST_COPIES = 2000
# Seconds until one answer, the installation, further turns, and the whole run are given up.
ANSWER, INSTALL, MORE_TURNS, WHOLE = 60, 150, 200, 320


# What is asked.


@dataclass(frozen=True)
class Part:
    mechanism: str
    parameters: dict
    count: int = 1

    def loss(self):
        """In our loss language; decimals are exact."""
        number = {name: decimal(value) for name, value in self.parameters.items()}
        if self.mechanism == "subsampled":
            text = f"subsampled({number['rate']}, gaussian(sigma={number['sigma']}))"
        else:
            text = f"{self.mechanism}({', '.join(f'{name}={value}' for name, value in number.items())})"
        return text if self.count == 1 else f"{text}*{self.count}"

    def for_peers(self):
        numbers = {name: float(value) for name, value in self.parameters.items()}
        return {"mechanism": self.mechanism, "count": self.count} | numbers


@dataclass(frozen=True)
class Case:
    name: str
    parts: list
    peers: list

    def losses(self):
        return " + ".join(part.loss() for part in self.parts)


def decimal(value):
    digits = Decimal(value.numerator) / value.denominator
    assert Fraction(digits) == value, "no finite decimal"
    return format(digits, "f")


def part(mechanism, count=1, **parameters):
    return Part(mechanism, {name: Fraction(value) for name, value in parameters.items()}, count)


def mixed():
    for i in range(1, 26):
        yield part("gaussian", sigma=10 + i)
        yield part("laplace", scale=20 + i)
        yield part("subsampled", rate="0.01", sigma=1 + Fraction(i, 25))
        yield part("randomized_response", epsilon=Fraction(i, 100))


def sampled(rate, sigma, count):
    name = f"sampled Gaussian q={rate} σ={sigma} ×{count}"
    return Case(name, [part("subsampled", count, rate=rate, sigma=sigma)], ["PLD", "RDP", "PRV"])


CASES = [
    sampled("0.01", "1", 1000),
    sampled("0.01", "1", 10000),
    sampled("0.001", "0.8", 100000),
    Case("Gaussian σ=5 ×10000", [part("gaussian", 10000, sigma=5)], ["PLD"]),
    Case("Laplace ε=0.1 ×1000", [part("laplace", 1000, epsilon="0.1")], ["PLD"]),
    Case("100 mixed mechanisms", list(mixed()), ["PLD"]),
]


# The run and its clock.

START = time.monotonic()


def left():
    return WHOLE - (time.monotonic() - START)


def patience():
    """How long the next answer may take."""
    return max(min(ANSWER, left()), 0)


class Refused(Exception):
    """No figure, and why."""


# Ours.


class Ours:
    """`demur account batch`, asked one question by many processes."""

    def __init__(self, case, delta):
        self.line = json.dumps({"losses": case.losses(), "delta": delta}, ensure_ascii=False) + "\n"
        self.once = self.many = self.call = float("inf")
        self.copies, self.spent = None, 0.0

    def ask(self, copies):
        """The answers, the CPU time and the time by the wall clock, all of one process."""
        if patience() == 0:
            raise Refused("no time left")
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        try:
            run = subprocess.run(
                [COMMAND, "account", "batch"],
                input=self.line * copies, capture_output=True, text=True, timeout=patience(),
            )
        except subprocess.TimeoutExpired:
            raise Refused(f"no answer to {copies} question(s) in time") from None
        except OSError as error:
            raise Refused(f"cannot be started: {error.strerror}") from None
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        self.spent += wall
        if run.returncode != 0:
            raise Refused(run.stderr.strip() or run.stdout.strip() or f"exit code {run.returncode}")
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        answers = run.stdout.splitlines()
        if len(answers) != copies or len(set(answers)) > 1:
            raise Refused(f"{copies} equal question(s), {len(answers)} answer(s), {len(set(answers))} different")
        return answers, cpu, wall

    def first(self):
        """The answer; and how many copies make a turn."""
        answers, once, _ = self.ask(1)
        answer = json.loads(answers[0])
        if "epsilon" not in answer:
            raise Refused(answers[0])
        few = 10 if once < 0.1 else 1
        _, many, _ = self.ask(1 + few)
        each = max((many - once) / few, TURN / MOST_COPIES)
        self.copies = max(round(TURN / each), 1)
        return answer

    def take_turn(self):
        _, once, call = self.ask(1)
        _, many, _ = self.ask(1 + self.copies)
        self.once, self.many, self.call = min(self.once, once), min(self.many, many), min(self.call, call)

    def result(self, answer):
        return answer | {
            "seconds": max(self.many - self.once, 0.0) / self.copies,
            "copies": self.copies,
            "process_seconds": self.call,
        }


# The peers.


class Peers:
    """The process of accountant_peers.py; a new one after an answer that did not come."""

    def __init__(self, python):
        self.python, self.process, self.versions = python, None, {}

    def start(self):
        one_thread = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
        with open(ENVIRONMENT / "peers.log", "w") as log:
            self.process = subprocess.Popen(
                [self.python, HERE / "accountant_peers.py"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ | one_thread,
            )
        self.versions = self.read()

    def read(self):
        ready, _, _ = select.select([self.process.stdout], [], [], patience())
        line = self.process.stdout.readline() if ready else None
        if line:
            return json.loads(line)
        self.stop()
        raise Refused("no answer in time" if line is None else "its process ended")

    def ask(self, question):
        if patience() == 0:
            raise Refused("no time left")
        if self.process is None:
            self.start()
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = self.read()
        if "refused" in answer:
            raise Refused(answer["refused"])
        return answer

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


class Peer:
    """One of them, asked one question."""

    def __init__(self, peers, name, case, delta):
        parts = [part.for_peers() for part in case.parts]
        self.peers, self.question = peers, {"peer": name, "parts": parts, "delta": float(delta)}
        self.best, self.spent = None, 0.0

    def take_turn(self):
        start = time.perf_counter()
        answer = self.peers.ask(self.question)
        self.spent += time.perf_counter() - start
        if self.best is None or answer["seconds"] < self.best["seconds"]:
            self.best = answer


def measure(case, delta, peers, with_ours):
    """One row of the results."""
    row = {"case": case.name, "losses": case.losses(), "delta": delta, "ours": None, "peers": {}}
    contestants = {name: Peer(peers, name, case, delta) for name in case.peers}
    ours, answer = Ours(case, delta), None
    if with_ours:
        try:
            answer = ours.first()
            contestants = {"ours": ours} | contestants
        except (Refused, json.JSONDecodeError) as refusal:
            row["ours"] = {"refused": str(refusal)}
    for turn in range(TURNS):
        for name, contestant in list(contestants.items()):
            tired = contestant.spent > ENOUGH or time.monotonic() - START > MORE_TURNS
            if turn > 0 and tired:
                continue
            try:
                contestant.take_turn()
            except Refused as refusal:
                del contestants[name]
                if name == "ours":
                    row["ours"] = {"refused": str(refusal)}
                else:
                    row["peers"][name] = {"refused": str(refusal)}
    for name, contestant in contestants.items():
        if name == "ours":
            row["ours"] = contestant.result(answer)
        else:
            row["peers"][name] = contestant.best
    return row


# What is known beforehand.


def exact_values():
    """ε of each question, and one unit of its last digit."""
    known = {}
    with open(HERE / "exact.csv", newline="") as file:
        for name, delta, value in csv.reader(line for line in file if not line.startswith("#")):
            unit = Fraction(1, 10 ** len(value.partition(".")[2]))
            known[name, delta] = (Fraction(value), unit)
    return known


def judge(row, known):
    """Adds what the truth is, whether our interval holds it, and who stays below it."""
    value, unit = known.get((row["case"], row["delta"]), (None, None))
    row["exact"] = None if value is None else float(value)
    lower = None if value is None else value - unit
    ours = row["ours"]
    if ours and "refused" not in ours:
        low, high = Fraction(str(ours["epsilon_lower"])), Fraction(str(ours["epsilon"]))
        ours["width"] = float((high - low) / high) if high else 0.0
        ours["holds"] = None if value is None else low <= value + unit and value - unit <= high
        lower = lower if ours["holds"] is False else low  # certified, unless shown to be wrong
    for peer in row["peers"].values():
        if lower and "refused" not in peer:
            excess = Fraction(peer["epsilon"]) / lower - 1 if peer["epsilon"] < float("inf") else float("inf")
            peer["excess"], peer["below"] = float(excess), excess < 0
            if ours and "refused" not in ours and ours["seconds"] > 0:
                peer["ratio"] = peer["seconds"] / ours["seconds"]


# The tables.


def number(value):
    """Three digits are all that a busy machine can vouch for."""
    places = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.2g}" if value < 0.1 else f"{value:.{places}f}"


def bound(text):
    """An upper bound in ten digits stays one."""
    digits = Context(prec=10, rounding=ROUND_CEILING).create_decimal(Decimal(text))
    return f"{digits:f}"


def table(heads, rows):
    """Names go left, numbers go right."""
    widths = [max(len(line[i]) for line in [heads] + rows) for i in range(len(heads))]
    left = [head in ("question", "δ", "peer", "method", "against the truth") for head in heads]
    show = lambda line: "| " + " | ".join(
        text.ljust(width) if to_left else text.rjust(width) for text, width, to_left in zip(line, widths, left)
    ) + " |"
    print(show(heads))
    print("|" + "|".join("---" if to_left else "---:" for to_left in left) + "|")
    for line in rows:
        print(show(line))
    print()


def print_ours(rows):
    lines = []
    for row in rows:
        ours, exact = row["ours"], "–" if row["exact"] is None else f"{row['exact']:.10g}"
        if "refused" in ours:
            lines.append([row["case"], row["delta"], ours["refused"][:60]] + ["–"] * 2 + [exact] + ["–"] * 3)
            continue
        holds = {True: "yes", False: "NO", None: "–"}[ours["holds"]]
        times = [number(ours[key] * 1000) for key in ("seconds", "process_seconds")]
        lines.append([
            row["case"], row["delta"], str(ours.get("method", "–")), bound(str(ours["epsilon"])),
            f"{ours['width']:.1e}", exact, holds, *times,
        ])
    heads = ["question", "δ", "method", "ε ≤", "width/ε", "exact", "held", "ms", "process ms"]
    table(heads, lines)


def print_peers(rows):
    lines = []
    for row in rows:
        ours = row["ours"] or {"refused": "missing"}
        ours = ["–", "–"] if "refused" in ours else [bound(str(ours["epsilon"])), number(ours["seconds"] * 1000)]
        for name, peer in row["peers"].items():
            start = [row["case"], row["delta"], *ours, name]
            if "refused" in peer:
                lines.append([*start, "–", "–", "–", peer["refused"][:60]])
                continue
            ratio = f"{number(peer['ratio'])}×" if "ratio" in peer else "–"
            lines.append([*start, f"{peer['epsilon']:.10g}", number(peer["seconds"]), ratio, verdict(peer)])
    table(["question", "δ", "ours ε ≤", "ms", "peer", "its ε ≤", "s", "longer", "against the truth"], lines)


def verdict(peer):
    if "excess" not in peer:
        return "–"
    away = f"{peer['excess']:+.2g}".replace("-", "−")
    return f"BELOW THE TRUTH ({away})" if peer["below"] else away


# The environment.


def python_with_peers():
    """An interpreter that has what requirements.txt asks for."""
    return interpreter(ENVIRONMENT, HERE / "requirements.txt", INSTALL)


def ours_is_there():
    if os.access(COMMAND, os.X_OK):
        return True
    print("The command demur is MISSING: the peers are measured alone.", file=sys.stderr)
    print("`cargo build --release` builds it, and DEMUR may name another place.", file=sys.stderr)
    return False


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--json", type=Path, metavar="FILE", help="write every figure to this file")
    options = options.parse_args()
    if sys.version_info < (3, 11):
        sys.exit("Python 3.11 or newer is needed")
    known, with_ours = exact_values(), ours_is_there()
    peers, rows = Peers(python_with_peers()), []
    try:
        for case in CASES:
            for delta in DELTAS:
                row = measure(case, delta, peers, with_ours)
                judge(row, known)
                rows.append(row)
                print(f"measured {case.name}, δ = {delta}", file=sys.stderr)
    finally:
        peers.stop()
    if with_ours:
        print_ours(rows)
    else:
        print("ours: the command is missing\n")
    print_peers(rows)
    print(", ".join(f"{name} {version}" for name, version in peers.versions.items()))
    if options.json:
        options.json.write_text(json.dumps({"versions": peers.versions, "rows": rows}, indent=1) + "\n")
    if any(row["ours"] and row["ours"].get("holds") is False for row in rows):
        sys.exit("our interval does NOT hold the exact value somewhere")


if __name__ == "__main__":
    main()
