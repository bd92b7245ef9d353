-- name: TargetGet :one
SELECT tenant_id, id, kind, base_url, credential_ref, key_window_seconds, locatable, absent_after_seconds, created_at, disabled_at,
       paused_at, paused_by, pause_reason
FROM targets
WHERE tenant_id = @tenant_id AND id = @id
FOR NO KEY UPDATE;

-- name: TargetUpsert :exec
-- A target that was disabled is enabled again. Its kind stays: that it is the same is checked under the lock of TargetGet.
INSERT INTO targets (tenant_id, id, kind, base_url, credential_ref, key_window_seconds, locatable, absent_after_seconds)
VALUES (@tenant_id, @id, @kind, @base_url, @credential_ref, sqlc.narg(key_window_seconds), @locatable, sqlc.narg(absent_after_seconds))
ON CONFLICT ON CONSTRAINT targets_pkey DO UPDATE
SET base_url = excluded.base_url, credential_ref = excluded.credential_ref,
    key_window_seconds = excluded.key_window_seconds, locatable = excluded.locatable,
    absent_after_seconds = excluded.absent_after_seconds, disabled_at = NULL;

-- name: TargetList :many
SELECT tenant_id, id, kind, base_url, credential_ref, key_window_seconds, locatable, absent_after_seconds, created_at, disabled_at,
       paused_at, paused_by, pause_reason
FROM targets
WHERE tenant_id = @tenant_id
ORDER BY id;

-- name: TargetListInUse :many
-- Those that requests may still be sent to: the enabled ones, and the others with something open.
SELECT t.tenant_id, t.id, t.kind, t.base_url, t.credential_ref, t.key_window_seconds, t.locatable, t.absent_after_seconds,
       t.created_at, t.disabled_at, t.paused_at, t.paused_by, t.pause_reason
FROM targets AS t
WHERE t.disabled_at IS NULL
   OR EXISTS (SELECT FROM registrations AS r
              WHERE r.tenant_id = t.tenant_id AND r.target_id = t.id AND r.status IN ('pending', 'processing', 'unknown'))
ORDER BY t.tenant_id, t.id;

-- name: TargetDisable :execrows
UPDATE targets
SET disabled_at = now()
WHERE tenant_id = @tenant_id AND id = @id AND disabled_at IS NULL;

-- name: TargetDoubts :one
-- How many registrations at this target are in doubt, so that it has to be asked what it has.
SELECT count(*)
FROM registrations
WHERE tenant_id = @tenant_id AND target_id = @target_id AND status IN ('processing', 'unknown');

-- name: TargetPause :execrows
-- Attempts that have begun end as they would. 0 rows: it is paused already, or not there.
UPDATE targets
SET paused_at = now(), paused_by = @paused_by, pause_reason = @pause_reason
WHERE tenant_id = @tenant_id AND id = @id AND paused_at IS NULL;

-- name: TargetResume :execrows
UPDATE targets
SET paused_at = NULL, paused_by = '', pause_reason = ''
WHERE tenant_id = @tenant_id AND id = @id AND paused_at IS NOT NULL;

-- name: TargetListDue :many
-- What waits at a target and is due, the longest first: the work of a target that is resumed. What is not due yet still has
-- its job, which comes in its time. Those with stop_reason wait for a person.
SELECT id
FROM registrations
WHERE tenant_id = @tenant_id AND target_id = @target_id AND status IN ('pending', 'unknown')
  AND coalesce(next_attempt_at, lease_until) <= now() -- registrations_open_idx
  AND (flagged_at IS NULL OR reason <> @stop_reason::text)
ORDER BY coalesce(next_attempt_at, lease_until);

-- name: TargetStandings :many
-- How many registrations are open or flagged at each target, in each status, and since when the oldest is.
SELECT target_id, status, count(*) AS registrations, count(flagged_at) AS flagged, min(created_at)::timestamptz AS oldest_at
FROM registrations
WHERE tenant_id = @tenant_id AND status IN ('pending', 'processing', 'unknown')
GROUP BY target_id, status
ORDER BY target_id, status;

-- name: TargetOfRegistration :one
-- Whether the target of a registration is paused, and by whom.
SELECT t.id, t.paused_at, t.paused_by, t.pause_reason
FROM registrations AS r
JOIN targets AS t ON t.tenant_id = r.tenant_id AND t.id = r.target_id
WHERE r.tenant_id = @tenant_id AND r.id = @id;

-- name: TargetAnyOpen :batchone
-- Whether invoices of these tenants are to be registered anywhere, so that there will be jobs to enqueue.
SELECT EXISTS (SELECT FROM targets WHERE tenant_id = ANY (@tenant_ids::text[]) AND disabled_at IS NULL);
