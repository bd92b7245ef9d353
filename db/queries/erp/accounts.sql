-- name: AccountInsert :execrows
INSERT INTO accounts (id, tenant_id, name, display_name, role, service_access, password_hash)
VALUES (@id, @tenant_id, @name, @display_name, @role, @service_access, sqlc.narg(password_hash))
ON CONFLICT (name) DO NOTHING;

-- name: AccountGetByName :one
SELECT id, tenant_id, name, display_name, role, service_access, password_hash, oidc_issuer, oidc_subject, created_at, disabled_at
FROM accounts
WHERE name = @name;

-- name: AccountGetByOIDC :one
SELECT id, tenant_id, name, display_name, role, service_access, password_hash, oidc_issuer, oidc_subject, created_at, disabled_at
FROM accounts
WHERE oidc_issuer = @oidc_issuer::text AND oidc_subject = @oidc_subject::text;

-- name: AccountList :many
-- Of one tenant, or of all.
SELECT id, tenant_id, name, display_name, role, service_access, password_hash, oidc_issuer, oidc_subject, created_at, disabled_at
FROM accounts
WHERE sqlc.narg(tenant_id)::text IS NULL OR tenant_id = sqlc.narg(tenant_id)::text
ORDER BY tenant_id, name;

-- name: AccountSetPassword :execrows
UPDATE accounts SET password_hash = @password_hash::text
WHERE id = @id;

-- name: AccountRenewPasswordHash :execrows
-- The same password, hashed anew; nothing if it was changed meanwhile.
UPDATE accounts SET password_hash = @password_hash::text
WHERE id = @id AND password_hash = @old_hash::text AND disabled_at IS NULL;

-- name: AccountSetRole :execrows
UPDATE accounts SET role = @role, service_access = @service_access
WHERE id = @id AND disabled_at IS NULL;

-- name: AccountBindOIDC :execrows
-- Once: who is bound stays so.
UPDATE accounts SET oidc_issuer = @oidc_issuer::text, oidc_subject = @oidc_subject::text
WHERE id = @id AND oidc_issuer IS NULL AND disabled_at IS NULL;

-- name: AccountDisable :execrows
UPDATE accounts SET disabled_at = now()
WHERE id = @id AND disabled_at IS NULL;
