-- name: InboxMessageInsert :exec
-- See OperationInsert.
INSERT INTO inbox_messages (tenant_id, source, channel, message_id, order_id, version, content_hash, outcome, detail)
SELECT @tenant_id, n.source, @channel, nullif(n.message_id, ''), n.order_id, n.version, n.content_hash, n.outcome, n.detail
FROM (SELECT unnest(@sources::text[])         AS source,
             unnest(@message_ids::text[])     AS message_id,
             unnest(@order_ids::text[])       AS order_id,
             unnest(@versions::bigint[])      AS version,
             unnest(@content_hashes::bytea[]) AS content_hash,
             unnest(@outcomes::text[])        AS outcome,
             unnest(@details::text[])         AS detail) AS n;

-- name: InboxMessageListSeen :many
-- Which of these messages came before. The hash covers the order's id, so naming that as well changes nothing, save
-- that the planner, without statistics, may take either index. LATERAL: see OperationListLive.
SELECT m.source, m.order_id, m.message_id::text AS message_id, m.content_hash
FROM (SELECT unnest(@sources::text[])         AS source,
             unnest(@order_ids::text[])       AS order_id,
             unnest(@message_ids::text[])     AS message_id,
             unnest(@content_hashes::bytea[]) AS content_hash) AS w
CROSS JOIN LATERAL (
    SELECT source, order_id, message_id, content_hash
    FROM inbox_messages
    WHERE tenant_id = @tenant_id AND source = w.source AND order_id = w.order_id
      AND message_id = w.message_id AND content_hash = w.content_hash
    OFFSET 0
) AS m;
