-- What /metrics shows of the ERP's database. None is read for each scrape: see internal/figures.

-- name: FigureListOpenRegistrations :many
-- All that is open, by registrations_open_idx.
SELECT r.status, (t.paused_at IS NOT NULL)::boolean AS paused, count(*) AS registrations,
       extract(epoch FROM now() - min(r.created_at))::float8 AS oldest_seconds
FROM registrations AS r
JOIN targets AS t ON t.tenant_id = r.tenant_id AND t.id = r.target_id
WHERE r.status IN ('pending', 'processing', 'unknown')
GROUP BY 1, 2;

-- name: FigureListFlaggedRegistrations :many
-- What an operator was told of, open or final, by registrations_flagged_idx.
SELECT reason, count(*) AS registrations, extract(epoch FROM now() - min(flagged_at))::float8 AS oldest_seconds
FROM registrations
WHERE flagged_at IS NOT NULL
GROUP BY reason;

-- name: FigureMostOverdue :one
-- How long the time of the registration that should have been worked on first has come; 0 if there is none. What has a flag
-- for which nothing is safe is worked on by nobody, and those of a paused target wait for a person.
SELECT greatest(coalesce(extract(epoch FROM now() - min(coalesce(r.next_attempt_at, r.lease_until))), 0), 0)::float8 AS seconds
FROM registrations AS r
WHERE r.status IN ('pending', 'processing', 'unknown') AND (r.flagged_at IS NULL OR r.reason <> @stop_reason::text)
  AND NOT EXISTS (SELECT FROM targets AS t WHERE t.tenant_id = r.tenant_id AND t.id = r.target_id AND t.paused_at IS NOT NULL);

-- name: FigureListFinalRegistrations :many
-- An index-only scan of registrations_final_status_idx.
SELECT status, count(*) AS registrations
FROM registrations
WHERE status IN ('succeeded', 'failed')
GROUP BY status;

-- name: FigureListJobs :many
-- Completed jobs say nothing that registrations don't, and there may be many of them.
SELECT queue, state::text AS state, count(*) AS jobs,
       greatest(extract(epoch FROM now() - min(scheduled_at)), 0)::float8 AS oldest_seconds
FROM river_job
WHERE state IN ('available', 'pending', 'retryable', 'running', 'scheduled', 'discarded')
GROUP BY queue, state;

-- name: FigureOldestRunningJob :one
SELECT greatest(coalesce(extract(epoch FROM now() - min(attempted_at)), 0), 0)::float8 AS seconds
FROM river_job
WHERE state = 'running';

-- name: FigureCountSessions :one
SELECT count(*) FROM sessions WHERE expires_at > now();

-- name: FigureDatabaseSize :one
SELECT pg_database_size(current_database())::bigint AS bytes;

-- name: FigureOldestOpenRun :one
-- How long ago the oldest reconciliation that has not come to its end began; 0 if there is none.
SELECT coalesce(extract(epoch FROM now() - min(started_at)), 0)::float8 AS seconds
FROM reconciliation_runs
WHERE finished_at IS NULL;

-- name: FigureListAcceptedDivergences :many
-- Still there, and all right so: a person has said it.
SELECT kind, count(*) AS divergences
FROM divergences
WHERE resolved_at IS NULL AND accepted_at IS NOT NULL
GROUP BY kind;

-- name: FigurePauses :one
SELECT count(*) AS pauses, coalesce(extract(epoch FROM now() - min(paused_at)), 0)::float8 AS oldest_seconds
FROM targets
WHERE paused_at IS NOT NULL AND disabled_at IS NULL;
