-- name: DashboardCountStates :many
-- How many operations are in each state (all but succeeded: see DashboardCountAll), counted no further than @most, and
-- since when the oldest of them is there; 1970 if there is none.
SELECT s.status::text AS status, c.operations, coalesce(o.oldest_at, TIMESTAMPTZ 'epoch')::timestamptz AS oldest_at
FROM (SELECT unnest(@statuses::text[]) AS status) AS s
CROSS JOIN LATERAL (
    SELECT count(*) AS operations
    FROM (SELECT FROM operations AS p
          WHERE p.tenant_id = @tenant_id AND p.status = s.status AND p.status <> 'succeeded'
          LIMIT @most) AS counted
) AS c
LEFT JOIN LATERAL (
    SELECT p.created_at AS oldest_at
    FROM operations AS p
    WHERE p.tenant_id = @tenant_id AND p.status = s.status AND p.status <> 'succeeded'
    ORDER BY p.created_at, p.id
    LIMIT 1
) AS o ON true;

-- name: DashboardCountAll :one
SELECT count(*) AS operations
FROM (SELECT FROM operations AS p WHERE p.tenant_id = @tenant_id LIMIT @most) AS counted;

-- name: DashboardCountAttention :one
SELECT (SELECT count(*)
        FROM (SELECT FROM operations AS p
              WHERE p.tenant_id = @tenant_id
                AND (p.flagged_at IS NOT NULL OR p.status = 'failed' AND p.superseded_at IS NULL
                     OR p.changed_after_delivery_version IS NOT NULL)
              LIMIT @most) AS counted) AS operations,
       -- 0 if there is none
       coalesce((SELECT extract(epoch FROM now() - p.created_at)
                 FROM operations AS p
                 WHERE p.tenant_id = @tenant_id
                   AND (p.flagged_at IS NOT NULL OR p.status = 'failed' AND p.superseded_at IS NULL
                        OR p.changed_after_delivery_version IS NOT NULL)
                 ORDER BY p.created_at, p.id
                 LIMIT 1), 0)::float8 AS oldest_seconds;

-- name: DashboardCountDue :one
-- Open, with nobody's hands on it, and its time has come: what waits for a worker.
SELECT count(*) AS operations
FROM (SELECT FROM operations AS p
      WHERE p.tenant_id = @tenant_id AND p.status IN ('pending', 'unknown') AND p.status <> 'succeeded'
        AND p.flagged_at IS NULL AND p.next_attempt_at <= now()
      LIMIT @most) AS counted;

-- name: DashboardListAttempts :many
-- The attempts of the last 24 hours, the running one the last of them.
SELECT date_trunc('hour', a.started_at, 'UTC')::timestamptz AS hour, a.outcome, count(*) AS attempts
FROM attempts AS a
JOIN operations AS p ON p.id = a.operation_id
WHERE p.tenant_id = @tenant_id AND a.started_at >= date_trunc('hour', now(), 'UTC') - interval '23 hours'
GROUP BY 1, 2;

-- name: DashboardListDivergences :many
SELECT kind, count(*) AS divergences, min(first_seen_at)::timestamptz AS oldest_at
FROM divergences
WHERE tenant_id = @tenant_id AND resolved_at IS NULL AND accepted_at IS NULL
GROUP BY kind
ORDER BY kind;

-- name: DashboardGetRuns :one
-- When reconciliation last came to its end (1970: never), and how many calls were refused in the last 24 hours.
SELECT coalesce((SELECT max(r.finished_at) FROM reconciliation_runs AS r WHERE r.tenant_id = @tenant_id),
                TIMESTAMPTZ 'epoch')::timestamptz AS reconciled_at,
       coalesce((SELECT sum(h.refused) FROM intake_refusal_hours AS h
                 WHERE h.tenant_id = @tenant_id AND h.hour >= date_trunc('hour', now(), 'UTC') - interval '23 hours'), 0)::bigint AS refused,
       now()::timestamptz AS now;
