CREATE VIEW "hr"."people_masked" AS
WITH masked AS (
  SELECT
    IFF(
      "t0"."age" IS NULL,
      CAST(NULL AS VARCHAR),
      CONCAT(
        CONCAT(
          CONCAT(
            CONCAT(
              '[',
              CAST(CAST("t0"."age" AS BIGINT) - (
                (
                  (
                    CAST("t0"."age" AS BIGINT) % 20
                  ) + 20
                ) % 20
              ) AS VARCHAR)
            ),
            ', '
          ),
          CAST((
            CAST("t0"."age" AS BIGINT) - (
              (
                (
                  CAST("t0"."age" AS BIGINT) % 20
                ) + 20
              ) % 20
            )
          ) + 20 AS VARCHAR)
        ),
        '['
      )
    ) AS "age",
    CONCAT(SUBSTRING("t0"."we""ird `co`l; -- 'x'", 1, 1), '*') AS "we""ird `co`l; -- 'x'",
    IFF(
      NOT (
        "t0"."pay" = CAST('NaN' AS DOUBLE)
      )
      AND "t0"."pay" BETWEEN -9007199254740980.0 AND 9007199254740980.0,
      CAST(CAST(FLOOR(
        (
          IFF(
            NOT (
              "t0"."pay" = CAST('NaN' AS DOUBLE)
            )
            AND "t0"."pay" BETWEEN -9007199254740980.0 AND 9007199254740980.0,
            "t0"."pay",
            CAST(0 AS DOUBLE)
          ) / 5
        ) + (
          (
            ABS(
              IFF(
                NOT (
                  "t0"."pay" = CAST('NaN' AS DOUBLE)
                )
                AND "t0"."pay" BETWEEN -9007199254740980.0 AND 9007199254740980.0,
                "t0"."pay",
                CAST(0 AS DOUBLE)
              ) / 5
            ) * 4.440892098500626e-16
          ) + 0.500000001
        )
      ) AS BIGINT) * 5 AS DOUBLE),
      "t0"."pay"
    ) AS "pay",
    CAST(CAST(DATE_TRUNC('YEAR', "t0"."born") AS TIMESTAMP) AS DATE) AS "born",
    "t0"."ill",
    "t0"."y"
  FROM "hr"."people" AS "t0"
),
counted AS (
  SELECT
    "age",
    "we""ird `co`l; -- 'x'",
    "pay",
    "born",
    "ill",
    "y",
    COUNT(*) OVER (PARTITION BY "age", "we""ird `co`l; -- 'x'", "born") AS aegis_rows,
    DENSE_RANK() OVER (PARTITION BY "age", "we""ird `co`l; -- 'x'", "born" ORDER BY "ill") AS aegis_rank_0
  FROM masked
),
figured AS (
  SELECT
    "age",
    "we""ird `co`l; -- 'x'",
    "pay",
    "born",
    "ill",
    "y",
    aegis_rows,
    aegis_rank_0,
    MAX(aegis_rank_0) OVER (PARTITION BY "age", "we""ird `co`l; -- 'x'", "born") AS aegis_distinct_0
  FROM counted
),
judged AS (
  SELECT
    "age",
    "we""ird `co`l; -- 'x'",
    "pay",
    "born",
    "ill",
    "y",
    CASE WHEN aegis_rows >= 3
        AND aegis_distinct_0 >= 2
      THEN 1 ELSE 0 END AS aegis_kept
  FROM figured
),
limited AS (
  SELECT
    "age",
    "we""ird `co`l; -- 'x'",
    "pay",
    "born",
    "ill",
    "y",
    aegis_kept,
    SUM(1 - aegis_kept) OVER () AS aegis_suppressed,
    COUNT(*) OVER () AS aegis_total
  FROM judged
)
SELECT
  "age",
  "we""ird `co`l; -- 'x'",
  "pay",
  "born",
  "ill",
  "y"
FROM limited
WHERE aegis_kept = 1
  AND aegis_suppressed <= FLOOR(0.1 * aegis_total + 0.000000001)
