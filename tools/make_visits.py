#!/usr/bin/env python3
"""Makes examples/visits/visits.csv: hospital visits of people who do not exist.

    python3 tools/make_visits.py > examples/visits/visits.csv

Everything is drawn from a fixed seed, so the file is always the same. 4 000 people live in six regions; most come
once or twice, a few come often. A visit has a day, a department, a cost in euros and the nights that were stayed; some costs are missing.
Python 3 alone is needed.
"""

import random
import sys
from datetime import date, timedelta

PEOPLE = 4_000
REGIONS = [("north", 28), ("south", 22), ("east", 18), ("west", 17), ("coast", 10), ("islands", 5)]
# name, weight, usual cost, mean nights, younger (-) or older (+) than average
DEPARTMENTS = [
    ("emergency", 30, 320, 0.4, 0),
    ("surgery", 12, 2900, 3.1, 8),
    ("cardiology", 11, 1400, 1.9, 22),
    ("orthopaedics", 14, 1100, 1.4, 5),
    ("paediatrics", 13, 260, 0.5, -38),
    ("maternity", 8, 1800, 2.2, -12),
    ("oncology", 5, 4200, 4.0, 18),
    ("eye clinic", 7, 240, 0.1, 15),
]


def pick(random_, weighted):
    return random_.choices([name for name, *_ in weighted], [weight for _, weight, *_ in weighted])[0]


def main():
    random_ = random.Random(1865)
    print("patient_id,day,region,department,age,nights,cost")
    rows = []
    for patient in range(1, PEOPLE + 1):
        region = pick(random_, REGIONS)
        age = min(104, max(0, round(random_.gauss(44, 23))))
        visits = 1 + int(random_.expovariate(1.0)) + (12 if random_.random() < 0.004 else 0)
        for _ in range(visits):
            weights = [(name, weight * max(0.05, 1 - abs(age - 44 - tilt) / 70)) for name, weight, _, _, tilt in DEPARTMENTS]
            department = pick(random_, weights)
            _, _, usual, stay, _ = next(row for row in DEPARTMENTS if row[0] == department)
            nights = int(random_.expovariate(1 / stay)) if stay > 0.2 else 0
            cost = usual * random_.lognormvariate(0, 0.45) + 210 * nights
            day = date(2025, 1, 1) + timedelta(days=random_.randrange(365))
            written = "" if random_.random() < 0.03 else f"{cost:.2f}"
            rows.append((day, patient, region, department, age, nights, written))
    rows.sort()
    for day, patient, region, department, age, nights, cost in rows:
        print(f"{patient},{day},{region},{department},{age},{nights},{cost}")


if __name__ == "__main__":
    sys.exit(main())
