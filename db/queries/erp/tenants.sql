-- name: TenantInsert :execrows
INSERT INTO tenants (id, name)
VALUES (@id, @name)
ON CONFLICT ON CONSTRAINT tenants_pkey DO NOTHING;

-- name: TenantGet :one
SELECT id, name, created_at
FROM tenants
WHERE id = @id;

-- name: TenantList :many
SELECT id, name, created_at
FROM tenants
ORDER BY id;
