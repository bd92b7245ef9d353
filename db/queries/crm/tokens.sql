-- name: TokenGet :one
SELECT id, tenant_id, role, label, secret_hash, created_at, revoked_at, account_id
FROM tokens
WHERE id = @id;

-- name: TokenInsert :exec
INSERT INTO tokens (id, tenant_id, role, label, secret_hash, account_id)
VALUES (@id, @tenant_id, @role, @label, @secret_hash, sqlc.narg(account_id));

-- name: TokenList :many
SELECT id, tenant_id, role, label, secret_hash, created_at, revoked_at, account_id
FROM tokens
WHERE tenant_id = @tenant_id
ORDER BY created_at, id;

-- name: TokenRevoke :execrows
UPDATE tokens SET revoked_at = now()
WHERE id = @id AND tenant_id = @tenant_id AND revoked_at IS NULL;
