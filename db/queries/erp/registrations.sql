-- name: RegistrationGetStanding :one
-- What is on record, with ages by the database's clock: what the next attempt is planned from. It locks nothing; that it
-- still holds is checked by RegistrationBegin, which takes only the attempt number seen here.
SELECT r.tenant_id, r.invoice_id, r.target_id, r.key, r.status, r.attempt, r.waits, r.known, r.reason,
       (r.flagged_at IS NOT NULL)::boolean AS flagged,
       coalesce(r.next_attempt_at, r.lease_until, now())::timestamptz AS due_at,
       coalesce(coalesce(r.next_attempt_at, r.lease_until) <= now(), false)::boolean AS due,
       (r.first_sent_at IS NOT NULL)::boolean AS was_sent,
       coalesce(extract(epoch FROM now() - r.first_sent_at), 0)::float8 AS first_sent_seconds,
       EXISTS (SELECT FROM registration_attempts AS a
               WHERE a.registration_id = r.id AND a.outcome IN ('held', 'already_registered'))::boolean AS claimed,
       EXISTS (SELECT FROM registration_attempts AS a
               WHERE a.registration_id = r.id AND a.outcome IN ('rejected', 'foreign'))::boolean AS refused,
       t.kind, t.base_url, t.credential_ref, t.key_window_seconds, t.locatable, t.absent_after_seconds,
       (t.paused_at IS NOT NULL)::boolean AS paused,
       i.number, i.document
FROM registrations AS r
JOIN targets AS t ON t.tenant_id = r.tenant_id AND t.id = r.target_id
JOIN invoices AS i ON i.id = r.invoice_id
WHERE r.id = @id;

-- name: RegistrationBegin :one
-- One statement, so one commit: the next attempt is recorded before its request leaves. No row: somebody else has its
-- turn. Only the clock of the database decides: now() for what is due (it is never later than the lock),
-- clock_timestamp() for the lease (the statement may have waited for the lock). A request that is safe only for as long
-- as the target remembers the first one's key is not begun later than that, however long ago it was planned. At a target
-- that is paused none begins.
WITH begun AS (
    UPDATE registrations
    SET status          = 'processing',
        attempt         = attempt + 1,
        lease_until     = clock_timestamp() + make_interval(secs => @lease_seconds::float8),
        next_attempt_at = NULL,
        tried_since     = coalesce(tried_since, now()),
        first_sent_at   = CASE WHEN @sends::boolean THEN coalesce(first_sent_at, now()) ELSE first_sent_at END,
        last_sent_at    = CASE WHEN @sends::boolean THEN now() ELSE last_sent_at END
    WHERE registrations.id = @id
      AND attempt = @seen_attempt
      AND status IN ('pending', 'unknown') AND next_attempt_at <= now()
      AND (sqlc.narg(key_covers_seconds)::float8 IS NULL
           OR first_sent_at > now() - make_interval(secs => sqlc.narg(key_covers_seconds)::float8))
      AND NOT EXISTS (SELECT FROM targets AS t
                      WHERE t.tenant_id = registrations.tenant_id AND t.id = registrations.target_id AND t.paused_at IS NOT NULL)
    RETURNING registrations.id, attempt, last_sent_at
), recorded AS (
    INSERT INTO registration_attempts (registration_id, number, action, worker)
    SELECT begun.id, begun.attempt, @action::text, @worker::text FROM begun
)
SELECT begun.attempt, coalesce(extract(epoch FROM now() - begun.last_sent_at), 0)::float8 AS last_sent_seconds
FROM begun;

-- name: RegistrationExtend :execrows
-- The heartbeat of attempt n. 0 rows: it was overtaken.
UPDATE registrations
SET lease_until = clock_timestamp() + make_interval(secs => @lease_seconds::float8)
WHERE id = @id AND attempt = @attempt AND status = 'processing';

-- name: RegistrationEnd :one
-- The outcome of attempt n, and what it makes of the registration. No row: the attempt was overtaken and writes nothing.
-- newly_flagged is true once, for whoever sets the flag. A request that surely never left takes back the times of its
-- sending, where they are its alone.
WITH ended AS (
    UPDATE registrations
    SET status          = @status::text,
        lease_until     = NULL,
        waits           = waits + @waits::int,
        next_attempt_at = CASE WHEN @status::text IN ('pending', 'unknown')
                               THEN clock_timestamp() + make_interval(secs => CASE
                                   WHEN flagged_at IS NOT NULL THEN greatest(@pause_seconds::float8, @flagged_pause_seconds::float8)
                                   ELSE @pause_seconds::float8 END) END,
        finished_at     = CASE WHEN @status::text IN ('succeeded', 'failed') THEN now() END,
        flagged_at      = CASE WHEN @attention::boolean
                                    OR @status::text IN ('pending', 'unknown')
                                       AND tried_since <= now() - make_interval(secs => @limit_seconds::float8)
                               THEN coalesce(flagged_at, now())
                               WHEN @status::text = 'succeeded' THEN NULL
                               ELSE flagged_at END,
        first_sent_at   = CASE WHEN @unsent::boolean AND first_sent_at = last_sent_at THEN NULL ELSE first_sent_at END,
        last_sent_at    = CASE WHEN @unsent::boolean AND first_sent_at = last_sent_at THEN NULL ELSE last_sent_at END,
        known           = @known::text,
        reference       = @reference::text,
        warnings        = @warnings::text[],
        reason          = @reason::text,
        detail          = @detail::text
    WHERE registrations.id = @id AND registrations.attempt = @attempt AND registrations.status = 'processing'
    RETURNING registrations.id, registrations.attempt, registrations.next_attempt_at, registrations.flagged_at
), told AS (
    UPDATE registration_attempts
    SET outcome = @outcome::text, finished_at = now(), http_status = sqlc.narg(http_status)::int, detail = @detail::text
    FROM ended
    WHERE registration_attempts.registration_id = ended.id AND registration_attempts.number = ended.attempt
      AND registration_attempts.outcome = 'sent'
)
SELECT coalesce(next_attempt_at, now())::timestamptz AS due_at,
       coalesce(flagged_at = now(), false)::boolean AS newly_flagged
FROM ended;

-- name: RegistrationStop :many
-- No attempt is safe any more: the registration stays as it is, with a flag. newly_flagged is true once, for whoever sets
-- the flag. No row: somebody else was quicker.
UPDATE registrations
SET flagged_at = coalesce(flagged_at, now()), reason = @reason, detail = @detail
WHERE id = @id AND attempt = @seen_attempt AND status = 'unknown' AND (flagged_at IS NULL OR reason <> @reason)
RETURNING coalesce(flagged_at = now(), false)::boolean AS newly_flagged;

-- name: RegistrationOvertake :many
-- A registration that is being worked on by nobody: the lease of its attempt has ended. Its request may have had its
-- effect, so it becomes unknown and never pending. Rows that somebody else has locked are left to them. Without an id,
-- the oldest ones, up to max_items.
WITH dead AS (
    SELECT r.id
    FROM registrations AS r
    WHERE r.status = 'processing' AND coalesce(r.next_attempt_at, r.lease_until) <= now() -- registrations_open_idx
      AND (sqlc.narg(id)::uuid IS NULL OR r.id = sqlc.narg(id))
    ORDER BY coalesce(r.next_attempt_at, r.lease_until)
    LIMIT @max_items
    FOR UPDATE SKIP LOCKED
), overtaken AS (
    UPDATE registrations
    SET status = 'unknown', lease_until = NULL, next_attempt_at = now(), reason = @reason::text, detail = @detail::text
    FROM dead
    WHERE registrations.id = dead.id
    RETURNING registrations.id, registrations.attempt
), told AS (
    UPDATE registration_attempts
    SET outcome = 'overtaken', finished_at = now(), detail = @detail::text
    FROM overtaken
    WHERE registration_attempts.registration_id = overtaken.id AND registration_attempts.number = overtaken.attempt
      AND registration_attempts.outcome = 'sent'
)
SELECT id FROM overtaken;

-- name: RegistrationListByHash :exec
-- For the list below, until the end of the transaction. Statistics lag behind a queue that fills within seconds; planned for
-- an empty one, the list is read by a nested loop over it, whose time grows with the square: 5 s at 5,000 jobs, minutes at 50,000.
SELECT set_config('enable_nestloop', 'off', true);

-- name: RegistrationListWithoutJob :many
-- Open, due for longer than the margin, and no job left that could work on it. A running job counts only as long as its
-- client may be alive; a scheduled one only if it is just due: overdue it is lost, and a later one waits for a time that
-- was put forward (by reconciliation, which has asked in between). Those with stop_reason wait for a person, and those of a
-- paused target for its being resumed.
SELECT r.id
FROM registrations AS r
WHERE r.status IN ('pending', 'unknown')
  AND (r.flagged_at IS NULL OR r.reason <> @stop_reason::text)
  AND coalesce(r.next_attempt_at, r.lease_until) < now() - make_interval(secs => @margin_seconds::float8) -- registrations_open_idx
  AND NOT EXISTS (SELECT FROM targets AS t
                  WHERE t.tenant_id = r.tenant_id AND t.id = r.target_id AND t.paused_at IS NOT NULL)
  AND NOT EXISTS (
      SELECT FROM river_job AS j
      WHERE j.kind = @job_kind
        AND j.args ->> 'registration_id' = r.id::text
        AND (j.state IN ('available', 'pending')
             OR j.state = 'running' AND j.attempted_at > now() - make_interval(secs => @job_timeout_seconds::float8)
             OR j.state = 'scheduled'
                AND j.scheduled_at > now() - make_interval(secs => @margin_seconds::float8) AND j.scheduled_at <= now()
             OR j.state = 'retryable'
                AND j.scheduled_at > now() - make_interval(secs => @margin_seconds::float8)))
ORDER BY coalesce(r.next_attempt_at, r.lease_until)
LIMIT @max_items;

-- name: RegistrationListOfInvoice :many
SELECT id, target_id, status, reference, warnings, attempt, (flagged_at IS NOT NULL)::boolean AS flagged
FROM registrations
WHERE invoice_id = @invoice_id AND tenant_id = @tenant_id
ORDER BY target_id;

-- name: RegistrationList :many
-- Newest first, by (created_at, id); the page begins after the position (before_created_at, before_id).
SELECT r.id, r.invoice_id, i.number AS invoice_number, r.target_id, r.key, r.status, r.attempt, r.reference, r.warnings,
       r.reason, r.detail, r.created_at, r.finished_at, r.flagged_at, r.next_attempt_at, r.first_sent_at, r.last_sent_at
FROM registrations AS r
JOIN invoices AS i ON i.id = r.invoice_id
WHERE r.tenant_id = @tenant_id
  AND (sqlc.narg('status')::text IS NULL OR r.status = sqlc.narg('status'))
  AND (sqlc.narg('target_id')::text IS NULL OR r.target_id = sqlc.narg('target_id'))
  AND (sqlc.narg('flagged')::boolean IS NULL OR (r.flagged_at IS NOT NULL) = sqlc.narg('flagged'))
  AND (sqlc.narg('before_id')::uuid IS NULL
       OR (r.created_at, r.id) < (sqlc.narg('before_created_at')::timestamptz, sqlc.narg('before_id')::uuid))
ORDER BY r.created_at DESC, r.id DESC
LIMIT @page_size;

-- name: RegistrationGet :one
SELECT r.id, r.invoice_id, i.number AS invoice_number, r.target_id, r.key, r.status, r.attempt, r.reference, r.warnings,
       r.reason, r.detail, r.created_at, r.finished_at, r.flagged_at, r.next_attempt_at, r.first_sent_at, r.last_sent_at
FROM registrations AS r
JOIN invoices AS i ON i.id = r.invoice_id
WHERE r.tenant_id = @tenant_id AND r.id = @id;

-- name: RegistrationAttemptList :many
SELECT number, action, started_at, finished_at, outcome, http_status, detail, worker
FROM registration_attempts
WHERE registration_id = @registration_id
ORDER BY number;

-- name: RegistrationLock :one
-- For what a person does: until the end of the transaction no attempt begins or ends.
SELECT status
FROM registrations
WHERE tenant_id = @tenant_id AND id = @id
FOR NO KEY UPDATE;

-- name: RegistrationIsQueued :one
-- Whether a job is just about to work on it, or does.
SELECT EXISTS (SELECT FROM river_job AS j
               WHERE j.kind = @job_kind AND j.args ->> 'registration_id' = @registration_id::text
                 AND (j.state = 'available'
                      OR j.state = 'running' AND j.attempted_at > now() - make_interval(secs => @job_timeout_seconds::float8)))::boolean;

-- name: RegistrationMakeDue :execrows
-- Begun anew by an operator: the limits count from the next attempt on.
UPDATE registrations
SET next_attempt_at = now(), flagged_at = NULL, tried_since = NULL, reason = ''
WHERE id = @id AND status IN ('pending', 'unknown');

-- name: RegistrationResolve :execrows
-- What a person knows. Only from unknown.
UPDATE registrations
SET status = @status, reference = @reference, next_attempt_at = NULL, finished_at = now(), flagged_at = NULL,
    reason = @reason, detail = @detail
WHERE id = @id AND status = 'unknown';

-- name: RegistrationAcknowledge :execrows
-- A person has dealt with it: the flag goes, nothing else changes. What has failed has no flag as a rule, and what was
-- done about it by hand may be put on record all the same. Only what is final.
UPDATE registrations
SET flagged_at = NULL
WHERE id = @id AND (status = 'failed' OR status = 'succeeded' AND flagged_at IS NOT NULL);

-- name: RegistrationListNewer :many
-- As RegistrationList, oldest first, from behind the position (beyond_at, beyond_id) on.
SELECT r.id, r.invoice_id, i.number AS invoice_number, r.target_id, r.key, r.status, r.attempt, r.reference, r.warnings,
       r.reason, r.detail, r.created_at, r.finished_at, r.flagged_at, r.next_attempt_at, r.first_sent_at, r.last_sent_at
FROM registrations AS r
JOIN invoices AS i ON i.id = r.invoice_id
WHERE r.tenant_id = @tenant_id
  AND (sqlc.narg('status')::text IS NULL OR r.status = sqlc.narg('status'))
  AND (sqlc.narg('target_id')::text IS NULL OR r.target_id = sqlc.narg('target_id'))
  AND (sqlc.narg('flagged')::boolean IS NULL OR (r.flagged_at IS NOT NULL) = sqlc.narg('flagged'))
  AND (r.created_at, r.id) > (@beyond_at::timestamptz, @beyond_id::uuid)
ORDER BY r.created_at, r.id
LIMIT @page_size;

-- name: RegistrationCounts :many
-- How many of a tenant's registrations are in each status; of the finished ones only those that a person has to see.
SELECT status, count(*) AS registrations, count(flagged_at) AS flagged, min(created_at)::timestamptz AS oldest_at
FROM registrations
WHERE tenant_id = @tenant_id AND (status IN ('pending', 'processing', 'unknown') OR flagged_at IS NOT NULL)
GROUP BY status
ORDER BY status;
