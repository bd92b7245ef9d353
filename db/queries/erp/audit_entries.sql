-- name: AuditEntryInsert :exec
INSERT INTO audit_entries (tenant_id, actor, action, subject, reason, via, address, request_id, account_id)
VALUES (@tenant_id, @actor, @action, @subject, @reason, @via, @address, @request_id, sqlc.narg(account_id));
