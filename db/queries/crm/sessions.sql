-- name: SessionInsert :execrows
-- Only for an account that is not disabled and, where a password was checked, still has that password. FOR SHARE waits
-- for whoever is just disabling the account or changing the password, and then sees what they did: a session begun with
-- the old password can't be left behind by the change that ends all sessions.
INSERT INTO sessions (id_hash, account_id, expires_at, address, user_agent)
SELECT @id_hash, a.id, now() + make_interval(secs => @life_seconds::float8), @address, @user_agent
FROM accounts a
WHERE a.id = @account_id AND a.disabled_at IS NULL
  AND (sqlc.narg(password_hash)::text IS NULL OR a.password_hash = sqlc.narg(password_hash)::text)
FOR SHARE OF a;

-- name: SessionGet :one
-- Whose session it is, if it is alive by the database's clock, and whether last_seen_at is to be written again.
SELECT a.id, a.tenant_id, a.name, a.display_name, a.role, a.service_access,
       (s.last_seen_at < now() - make_interval(secs => @touch_seconds::float8))::boolean AS touch
FROM sessions s JOIN accounts a ON a.id = s.account_id
WHERE s.id_hash = @id_hash AND a.disabled_at IS NULL
  AND now() < s.expires_at AND now() < s.last_seen_at + make_interval(secs => @idle_seconds::float8);

-- name: SessionTouch :exec
-- The condition on time keeps requests that come together from writing one after the other.
UPDATE sessions SET last_seen_at = now()
WHERE id_hash = @id_hash AND last_seen_at < now() - make_interval(secs => @touch_seconds::float8);

-- name: SessionDelete :exec
DELETE FROM sessions WHERE id_hash = @id_hash;

-- name: SessionDeleteOfAccount :execrows
DELETE FROM sessions WHERE account_id = @account_id;

-- name: SessionDeleteEnded :execrows
-- A few at a time, at each log-in; those that another log-in is removing are left to it.
DELETE FROM sessions
WHERE id_hash IN (
    SELECT id_hash FROM sessions
    WHERE expires_at <= now() OR last_seen_at + make_interval(secs => @idle_seconds::float8) <= now()
    LIMIT 100 FOR UPDATE SKIP LOCKED
);

-- name: SessionListExpired :many
-- What log-ins have not removed, such as when nobody logs in any more. One that is only idle goes when its life is over.
SELECT id_hash, expires_at, extract(epoch FROM now() - expires_at)::float8 AS overdue_seconds
FROM sessions
WHERE expires_at <= now() AND (expires_at, id_hash) > (@after_at::timestamptz, @after_id_hash::bytea)
ORDER BY expires_at, id_hash
LIMIT @max_items;

-- name: SessionDeleteExpired :execrows
DELETE FROM sessions
WHERE id_hash IN (SELECT s.id_hash FROM sessions AS s
                  WHERE s.id_hash = ANY (@id_hashes::bytea[]) AND s.expires_at <= now()
                  FOR UPDATE SKIP LOCKED);
