-- name: TokenGet :one
-- With the person whose own it is, if it is one's.
SELECT t.id, t.tenant_id, t.role, t.label, t.secret_hash, t.created_at, t.revoked_at, t.account_id,
       a.name AS account_name, a.display_name AS account_display_name, a.role AS account_role,
       a.service_access AS account_service, a.disabled_at AS account_disabled_at
FROM tokens t LEFT JOIN accounts a ON a.id = t.account_id
WHERE t.id = @id;

-- name: TokenListByIDs :many
-- TokenGet for several at once.
SELECT t.id, t.tenant_id, t.role, t.label, t.secret_hash, t.created_at, t.revoked_at, t.account_id,
       a.name AS account_name, a.display_name AS account_display_name, a.role AS account_role,
       a.service_access AS account_service, a.disabled_at AS account_disabled_at
FROM tokens t LEFT JOIN accounts a ON a.id = t.account_id
WHERE t.id = ANY(@ids::text[]);

-- name: TokenInsert :exec
INSERT INTO tokens (id, tenant_id, role, label, secret_hash, account_id)
VALUES (@id, @tenant_id, @role, @label, @secret_hash, sqlc.narg(account_id));

-- name: TokenList :many
SELECT t.id, t.tenant_id, t.role, t.label, t.secret_hash, t.created_at, t.revoked_at, t.account_id,
       a.name AS account_name, a.display_name AS account_display_name, a.role AS account_role,
       a.service_access AS account_service, a.disabled_at AS account_disabled_at
FROM tokens t LEFT JOIN accounts a ON a.id = t.account_id
WHERE t.tenant_id = @tenant_id
ORDER BY t.created_at, t.id;

-- name: TokenRevoke :execrows
UPDATE tokens SET revoked_at = now()
WHERE id = @id AND tenant_id = @tenant_id AND revoked_at IS NULL;
