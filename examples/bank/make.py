"""Make the table of the bank tutorial: 2,000 card customers who do not exist."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

ROWS = 2_000
DISTRICTS = {"10115": 90, "10317": -60, "10623": 180, "10785": 120, "12043": -90, "13351": -120}
OCCUPATIONS = {
    "clerk": 0,
    "craftsman": 40,
    "driver": -40,
    "engineer": 240,
    "nurse": 20,
    "pensioner": -150,
    "physician": 480,
    "retail": -80,
    "student": -220,
    "teacher": 130,
}
WEIGHTS = [0.16, 0.13, 0.08, 0.11, 0.1, 0.14, 0.03, 0.12, 0.07, 0.06]
HOUSEHOLDS = {"single": 0, "couple": 160, "family": 330}
CHANNELS = ["branch", "online", "app"]


def customers(seed: int = 11) -> list[dict[str, object]]:
    """Return one row per customer; the same seed gives the same rows.

    The spending depends on age, occupation, household, district and income, and on chance.
    """
    random = np.random.default_rng(seed)
    rows: list[dict[str, object]] = []
    for number in range(ROWS):
        occupation = str(random.choice(list(OCCUPATIONS), p=WEIGHTS))
        age = _age(occupation, random)
        household = str(random.choice(list(HOUSEHOLDS), p=[0.42, 0.3, 0.28]))
        district = str(random.choice(list(DISTRICTS)))
        income = _income(occupation, age, random)
        spending = (
            250
            + 0.22 * income
            + 0.5 * OCCUPATIONS[occupation]
            + HOUSEHOLDS[household]
            + DISTRICTS[district]
            - 0.09 * (age - 45) ** 2
            + random.normal(0, 170)
        )
        rows.append(
            {
                "customer": f"C{700_000 + 37 * number + int(random.integers(37))}",
                "sex": str(random.choice(["female", "male"])),
                "age": age,
                "district": district,
                "occupation": occupation,
                "household": household,
                "income": income,
                "channel": str(random.choice(CHANNELS, p=[0.2, 0.45, 0.35])),
                "years_with_bank": int(min(random.gamma(2.2, 3.5), max(age - 17, 1))),
                "spending": max(round(float(spending)), 20),
            }
        )
    return rows


def _age(occupation: str, random: np.random.Generator) -> int:
    """Return an age that suits the occupation."""
    low, high = {"student": (18, 30), "pensioner": (62, 93)}.get(occupation, (20, 66))
    return int(random.integers(low, high))


def _income(occupation: str, age: int, random: np.random.Generator) -> int:
    """Return a monthly income in tens."""
    mean = 1900 + 4.5 * OCCUPATIONS[occupation] + 9 * min(age - 18, 35)
    return max(int(round(random.normal(mean, 380), -1)), 450)


def main() -> None:
    """Write the table to the file that the first argument names."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name("customers.csv"))
    rows = customers()
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
