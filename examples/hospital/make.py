"""Make the table of the hospital tutorial: 2,400 stays that nobody had."""

from __future__ import annotations

import csv
import sys
from datetime import date, timedelta
from pathlib import Path

import numpy as np

ROWS = 2_400
POSTCODES = ["48143", "48145", "48147", "48149", "48151", "48153", "48155", "48157"]
DIAGNOSES = ["I50.9", "I21.4", "J44.1", "J18.9", "E11.9", "N18.3", "K80.2", "S72.0"]
RISK = [1.1, 0.4, 0.9, 0.1, 0.2, 0.7, -0.9, 0.0]
WARDS = {
    "I": "cardiology",
    "J": "pneumology",
    "E": "medicine",
    "N": "medicine",
    "K": "surgery",
    "S": "surgery",
}
START = date(2024, 1, 1)
FIRST = [
    "Anna",
    "Ben",
    "Clara",
    "David",
    "Emil",
    "Frieda",
    "Georg",
    "Hanna",
    "Ida",
    "Jonas",
    "Karl",
    "Lena",
    "Moritz",
    "Nora",
    "Otto",
    "Paula",
]
FRONT = [
    "Arn",
    "Beck",
    "Claas",
    "Dier",
    "Ehl",
    "Funk",
    "Gerd",
    "Hans",
    "Jans",
    "Klaas",
    "Lang",
    "Mey",
    "Nolt",
    "Ott",
    "Pet",
    "Roh",
    "Sand",
    "Thom",
    "Voss",
    "Wieb",
]
BACK = ("er", "mann", "sen", "ke", "hoff", "berg", "ing", "stedt")


def main(path: Path) -> None:
    """Write the table; the same bytes each time."""
    random = np.random.default_rng(48143)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["case_number", "patient", "sex", "age", "postcode", "admitted", "ward", "diagnosis", "insurance", "nights",
             "earlier_stays", "readmitted"]
        )  # fmt: skip
        for number in range(ROWS):
            writer.writerow(stay(number, random))


def stay(number: int, random: np.random.Generator) -> list[str | int]:
    """Return one stay: older people with heart, lung or kidney trouble come back more often."""
    age = int(np.clip(random.normal(64, 17), 18, 99))
    diagnosis = int(random.choice(len(DIAGNOSES), p=[0.18, 0.1, 0.14, 0.14, 0.14, 0.1, 0.12, 0.08]))
    earlier = int(random.poisson(0.4 + 0.02 * max(age - 50, 0)))
    nights = int(1 + random.poisson(3 + 0.05 * age))
    private = random.random() < 0.15
    odds = -2.6 + RISK[diagnosis] + 0.6 * earlier + 0.02 * (age - 64) + 0.04 * (nights - 6)
    again = random.random() < 1 / (1 + np.exp(-odds))
    return [
        700_000 + 7 * number + int(random.integers(0, 7)),
        f"{random.choice(FIRST)} {random.choice(FRONT)}{random.choice(BACK)}",
        str(random.choice(["female", "male"])),
        age,
        str(random.choice(POSTCODES, p=[0.2, 0.2, 0.15, 0.15, 0.1, 0.1, 0.06, 0.04])),
        (START + timedelta(days=int(random.integers(0, 366)))).isoformat(),
        WARDS[DIAGNOSES[diagnosis][0]],
        DIAGNOSES[diagnosis],
        "private" if private else "statutory",
        nights,
        earlier,
        "yes" if again else "no",
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
