-- +goose Up

-- Every message that brought an order, in the words of its sender. message_id is the sender's own identity of the
-- message, where it has one; together with the content's hash it recognises a message that came before. (The id
-- alone must not swallow another order that wrongly came under it.)
CREATE TABLE inbox_messages (
    id           bigint      GENERATED ALWAYS AS IDENTITY,
    tenant_id    text        NOT NULL,
    source       text        NOT NULL,
    channel      text        NOT NULL,
    message_id   text,
    order_id     text        NOT NULL,
    version      bigint      NOT NULL,
    content_hash bytea       NOT NULL,
    outcome      text        NOT NULL,
    detail       text        NOT NULL DEFAULT '',
    received_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT inbox_messages_pkey PRIMARY KEY (id),
    CONSTRAINT inbox_messages_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id),
    CONSTRAINT inbox_messages_message_key UNIQUE (tenant_id, source, message_id, content_hash),
    CONSTRAINT inbox_messages_channel_known CHECK (channel IN ('api', 'import', 'generate')),
    CONSTRAINT inbox_messages_outcome_known CHECK (outcome IN
        ('created', 'already_there', 'changed', 'changed_after_delivery', 'cancelled', 'stale', 'refused')),
    CONSTRAINT inbox_messages_content_hash_length CHECK (octet_length(content_hash) = 32)
);
CREATE INDEX inbox_messages_order_idx ON inbox_messages (tenant_id, source, order_id, id);

-- The newest known version of an order. Its row is the lock under which versions are compared.
CREATE TABLE orders (
    tenant_id    text        NOT NULL,
    source       text        NOT NULL,
    order_id     text        NOT NULL,
    version      bigint      NOT NULL,
    status       text        NOT NULL,
    -- canonical JSON of the order (RFC 8785) and its SHA-256
    content      bytea       NOT NULL,
    content_hash bytea       NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT orders_pkey PRIMARY KEY (tenant_id, source, order_id),
    CONSTRAINT orders_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (id),
    CONSTRAINT orders_version_positive CHECK (version >= 1),
    CONSTRAINT orders_status_known CHECK (status IN ('confirmed', 'cancelled')),
    CONSTRAINT orders_content_hash_length CHECK (octet_length(content_hash) = 32)
);

-- +goose Down
DROP TABLE orders;
DROP TABLE inbox_messages;
