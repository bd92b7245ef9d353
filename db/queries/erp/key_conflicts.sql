-- name: KeyConflictInsert :exec
INSERT INTO key_conflicts (tenant_id, operation, key, caller, differences)
VALUES (@tenant_id, @operation, @key, @caller, @differences);
