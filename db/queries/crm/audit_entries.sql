-- name: AuditEntryInsert :exec
INSERT INTO audit_entries (tenant_id, actor, action, subject, reason)
VALUES (@tenant_id, @actor, @action, @subject, @reason);
