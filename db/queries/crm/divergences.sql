-- name: DivergenceUpsert :many
-- One open row for each kind and subject: a difference that was found before is seen again. What was accepted stays so, as
-- long as both sides say what they said then. No kind and subject may stand in a call twice.
INSERT INTO divergences (tenant_id, kind, owner, subject, source, order_id, key, ours, theirs, action)
SELECT @tenant_id, n.kind, n.owner, n.subject, n.source, n.order_id, n.key, n.ours, n.theirs, n.action
FROM (SELECT unnest(@kinds::text[])     AS kind,
             unnest(@owners::text[])    AS owner,
             unnest(@subjects::text[])  AS subject,
             unnest(@sources::text[])   AS source,
             unnest(@order_ids::text[]) AS order_id,
             unnest(@keys::text[])      AS key,
             unnest(@ours::text[])      AS ours,
             unnest(@theirs::text[])    AS theirs,
             unnest(@actions::text[])   AS action) AS n
ORDER BY n.kind COLLATE "C", n.subject COLLATE "C"
ON CONFLICT (tenant_id, kind, subject) WHERE resolved_at IS NULL DO UPDATE
SET last_seen_at = now(), owner = excluded.owner, ours = excluded.ours, theirs = excluded.theirs, action = excluded.action,
    accepted_at = CASE WHEN divergences.ours = excluded.ours AND divergences.theirs = excluded.theirs THEN divergences.accepted_at END,
    decided_by = CASE WHEN divergences.ours = excluded.ours AND divergences.theirs = excluded.theirs THEN divergences.decided_by ELSE '' END,
    decision_reason = CASE WHEN divergences.ours = excluded.ours AND divergences.theirs = excluded.theirs
                           THEN divergences.decision_reason ELSE '' END
RETURNING id, (first_seen_at = now())::boolean AS is_new;

-- name: DivergenceInsertResolved :exec
-- A difference that was put right when it was found. Where it stood open from before, that row is resolved.
WITH stood AS (
    UPDATE divergences
    SET last_seen_at = now(), resolved_at = now(), ours = @ours, theirs = @theirs, action = @action
    WHERE tenant_id = @tenant_id AND kind = @kind AND subject = @subject AND resolved_at IS NULL
    RETURNING id
)
INSERT INTO divergences (tenant_id, kind, owner, subject, source, order_id, key, ours, theirs, action, resolved_at)
SELECT @tenant_id, @kind, @owner, @subject, @source, @order_id, @key, @ours, @theirs, @action, now()
WHERE NOT EXISTS (SELECT FROM stood);

-- name: DivergenceResolve :execrows
UPDATE divergences
SET resolved_at = now(), action = @action
WHERE tenant_id = @tenant_id AND id = ANY (@ids::bigint[]) AND resolved_at IS NULL AND last_seen_at < @seen_before;

-- name: DivergenceListUnseen :many
-- Open, and not seen since a run began: it has to look at each of them.
SELECT id, kind, subject, source, order_id, key
FROM divergences
WHERE tenant_id = @tenant_id AND resolved_at IS NULL AND last_seen_at < @seen_before AND id > @after_id
  AND kind = ANY (@kinds::text[])
ORDER BY id
LIMIT @max_items;

-- name: DivergenceCountOpen :many
-- What a person has accepted does not count.
SELECT kind, count(*) AS divergences
FROM divergences
WHERE resolved_at IS NULL AND accepted_at IS NULL
GROUP BY kind;

-- name: DivergenceGet :one
SELECT id, kind, owner, subject, source, order_id, key, ours, theirs, action, first_seen_at, last_seen_at, resolved_at,
       accepted_at, decided_by, decision_reason,
       (extract(epoch FROM coalesce(resolved_at, now()) - first_seen_at))::bigint AS age_seconds
FROM divergences
WHERE tenant_id = @tenant_id AND id = @id;

-- name: DivergenceAccept :execrows
UPDATE divergences
SET accepted_at = now(), decided_by = @decided_by, decision_reason = @decision_reason
WHERE tenant_id = @tenant_id AND id = @id AND resolved_at IS NULL AND accepted_at IS NULL;

-- name: DivergenceClose :execrows
UPDATE divergences
SET resolved_at = now(), decided_by = @decided_by, decision_reason = @decision_reason, action = 'closed by hand'
WHERE tenant_id = @tenant_id AND id = @id AND resolved_at IS NULL;
