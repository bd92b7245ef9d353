-- name: LoginFailureLock :exec
-- Tries that concern one subject decide one after the other, the first ones too, when there is no row to lock yet. The
-- order of the locks is the same for all, so that none waits for one that waits for it.
SELECT pg_advisory_xact_lock(k.lock)
FROM (SELECT hashtextextended('log-in ' || s.subject, 0) AS lock
      FROM (SELECT unnest(@subjects::text[]) AS subject) s
      ORDER BY 1) k;

-- name: LoginFailureGet :many
-- What has not been forgotten. clock_timestamp(), for the locks may have been waited for.
SELECT subject, failures, extract(epoch FROM clock_timestamp() - last_failed_at)::float8 AS age_seconds
FROM login_failures
WHERE subject = ANY(@subjects::text[]) AND last_failed_at > clock_timestamp() - make_interval(secs => @forget_seconds::float8);

-- name: LoginFailureCount :exec
-- Every try counts as a failure until it turns out right: tries at once don't get past the limit together.
INSERT INTO login_failures AS f (subject, failures, last_failed_at)
SELECT s.subject, 1, clock_timestamp()
FROM (SELECT unnest(@subjects::text[]) AS subject) s
ORDER BY s.subject
ON CONFLICT (subject) DO UPDATE SET
    failures = CASE WHEN f.last_failed_at > clock_timestamp() - make_interval(secs => @forget_seconds::float8)
                    THEN least(f.failures, 1000) + 1 ELSE 1 END,
    last_failed_at = clock_timestamp();

-- name: LoginFailureUncount :exec
-- Takes back a try that turned out right, and is no failure.
WITH gone AS (
    DELETE FROM login_failures WHERE subject = ANY(@subjects::text[]) AND failures = 1
)
UPDATE login_failures SET failures = failures - 1
WHERE subject = ANY(@subjects::text[]) AND failures > 1;

-- name: LoginFailureDelete :exec
DELETE FROM login_failures WHERE subject = @subject;

-- name: LoginFailureDeleteOld :execrows
-- A few at each try, more than it can add.
DELETE FROM login_failures
WHERE subject IN (
    SELECT subject FROM login_failures
    WHERE last_failed_at < now() - make_interval(secs => @forget_seconds::float8)
    ORDER BY last_failed_at LIMIT 20 FOR UPDATE SKIP LOCKED
);

-- name: LoginFailureListOld :many
-- What tries have not removed, such as when nobody tries any more.
SELECT subject, last_failed_at,
       extract(epoch FROM now() - last_failed_at - make_interval(secs => @forget_seconds::float8))::float8 AS overdue_seconds
FROM login_failures
WHERE last_failed_at <= now() - make_interval(secs => @forget_seconds::float8)
  AND (last_failed_at, subject) > (@after_at::timestamptz, @after_subject::text)
ORDER BY last_failed_at, subject
LIMIT @max_items;

-- name: LoginFailureDeleteForgotten :execrows
DELETE FROM login_failures
WHERE subject IN (SELECT f.subject FROM login_failures AS f
                  WHERE f.subject = ANY (@subjects::text[])
                    AND f.last_failed_at <= now() - make_interval(secs => @forget_seconds::float8)
                  FOR UPDATE SKIP LOCKED);
