-- +goose Up

-- +goose StatementBegin
-- An order or a request without what tells of a person: customer, note, metadata, and what the lines say in words. What
-- is kept is named, so that a member added later is dropped unless somebody decides otherwise: the claim, the dates, and
-- every amount, so that reconciliation can still compare.
CREATE FUNCTION without_personal_members(document jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    kept jsonb;
BEGIN
    SELECT coalesce(jsonb_object_agg(member, value), '{}') INTO kept
    FROM jsonb_each(document) AS d (member, value)
    WHERE member IN ('source', 'order', 'status', 'role', 'sequence', 'currency', 'issue_date', 'due_date', 'corrects',
                     'order_total', 'expected_gross');
    IF document ? 'lines' THEN
        kept := kept || jsonb_build_object('lines', (
            SELECT coalesce(jsonb_agg(
                (SELECT coalesce(jsonb_object_agg(member, value), '{}')
                 FROM jsonb_each(line) AS l (member, value)
                 WHERE member IN ('quantity', 'unit_price', 'discount', 'vat_rate', 'vat_category')) ORDER BY position), '[]')
            FROM jsonb_array_elements(document -> 'lines') WITH ORDINALITY AS e (line, position)));
    END IF;
    IF document ? 'invoices' THEN
        kept := kept || jsonb_build_object('invoices', (
            SELECT coalesce(jsonb_agg(without_personal_members(invoice) ORDER BY position), '[]')
            FROM jsonb_array_elements(document -> 'invoices') WITH ORDINALITY AS e (invoice, position)));
    END IF;
    RETURN kept;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- The same on the stored bytes. Of bytes that can't be read nothing is kept. Doing it twice changes nothing more.
CREATE FUNCTION without_personal_data(document bytea) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN convert_to(without_personal_members(convert_from(document, 'UTF8')::jsonb)::text, 'UTF8');
EXCEPTION WHEN data_exception THEN
    RETURN '{}';
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- A time that everybody can write down: years 1 to 9999. An infinite one, or one beyond, has no age that could be compared,
-- and no place in a list or a document.
CREATE FUNCTION is_tellable(t timestamptz) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN t >= TIMESTAMPTZ '0001-01-01 00:00:00Z' AND t < TIMESTAMPTZ '9999-12-31 00:00:00Z';
-- +goose StatementEnd

ALTER TABLE operations
    ADD COLUMN minimised_at timestamptz,
    -- A minimised request is no request any more: what may still be sent keeps its own.
    ADD CONSTRAINT operations_minimised_when_final
        CHECK (minimised_at IS NULL OR status IN ('succeeded', 'failed', 'cancelled')),
    ADD CONSTRAINT operations_finished_at_tellable CHECK (is_tellable(finished_at)),
    ADD CONSTRAINT operations_times_tellable CHECK (
        is_tellable(created_at) AND is_tellable(first_sent_at) AND is_tellable(next_attempt_at) AND is_tellable(lease_until)
        AND is_tellable(flagged_at) AND is_tellable(superseded_at) AND is_tellable(minimised_at));
ALTER TABLE orders
    ADD COLUMN minimised_at timestamptz,
    ADD CONSTRAINT orders_updated_at_tellable CHECK (is_tellable(updated_at)),
    ADD CONSTRAINT orders_created_at_tellable CHECK (is_tellable(created_at));
ALTER TABLE attempts
    ADD CONSTRAINT attempts_started_at_tellable CHECK (is_tellable(started_at)),
    ADD CONSTRAINT attempts_finished_at_tellable CHECK (is_tellable(finished_at));
ALTER TABLE inbox_messages ADD CONSTRAINT inbox_messages_received_at_tellable CHECK (is_tellable(received_at));
ALTER TABLE divergences
    ADD CONSTRAINT divergences_resolved_at_tellable CHECK (is_tellable(resolved_at)),
    ADD CONSTRAINT divergences_seen_at_tellable CHECK (is_tellable(first_seen_at) AND is_tellable(last_seen_at));

-- +goose StatementBegin
-- As before, save that a request may be minimised: once, to just what without_personal_data makes of it, and together
-- with its mark.
CREATE OR REPLACE FUNCTION guard_operation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.status IN ('succeeded', 'failed', 'cancelled') AND NEW.status <> OLD.status THEN
        RAISE EXCEPTION 'operation % is % and stays so', OLD.id, OLD.status USING ERRCODE = 'restrict_violation';
    END IF;
    IF NEW.key <> OLD.key THEN
        RAISE EXCEPTION 'the key of operation % never changes', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    IF NEW.minimised_at IS DISTINCT FROM OLD.minimised_at THEN
        IF OLD.minimised_at IS NOT NULL OR NEW.request_hash <> OLD.request_hash
           OR NEW.request <> without_personal_data(OLD.request) THEN
            RAISE EXCEPTION 'the request of operation % can be minimised once, and only by without_personal_data', OLD.id
                USING ERRCODE = 'restrict_violation';
        END IF;
    ELSIF (OLD.attempt > 0 OR OLD.minimised_at IS NOT NULL) AND NEW.request <> OLD.request THEN
        RAISE EXCEPTION 'the request of operation % has been sent and never changes', OLD.id
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd

-- What has been kept long enough, the longest overdue first; minimised rows leave their index. The other columns tell
-- apart what has one time: everything that one call brought.
CREATE INDEX operations_to_minimise_idx
    ON operations (finished_at, id) WHERE minimised_at IS NULL AND finished_at IS NOT NULL;
CREATE INDEX orders_to_minimise_idx
    ON orders (updated_at, tenant_id, source, order_id) WHERE minimised_at IS NULL;
CREATE INDEX inbox_messages_received_at_idx ON inbox_messages (received_at, id);
-- By the start and not the end: that an attempt ends then changes no index.
CREATE INDEX attempts_started_at_idx ON attempts (started_at, operation_id, number);
CREATE INDEX divergences_resolved_at_idx ON divergences (resolved_at, id) WHERE resolved_at IS NOT NULL;

-- +goose Down
DROP INDEX divergences_resolved_at_idx;
DROP INDEX attempts_started_at_idx;
DROP INDEX inbox_messages_received_at_idx;
DROP INDEX orders_to_minimise_idx;
DROP INDEX operations_to_minimise_idx;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION guard_operation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.status IN ('succeeded', 'failed', 'cancelled') AND NEW.status <> OLD.status THEN
        RAISE EXCEPTION 'operation % is % and stays so', OLD.id, OLD.status USING ERRCODE = 'restrict_violation';
    END IF;
    IF NEW.key <> OLD.key THEN
        RAISE EXCEPTION 'the key of operation % never changes', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    IF OLD.attempt > 0 AND NEW.request <> OLD.request THEN
        RAISE EXCEPTION 'the request of operation % has been sent and never changes', OLD.id
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
ALTER TABLE divergences DROP CONSTRAINT divergences_seen_at_tellable, DROP CONSTRAINT divergences_resolved_at_tellable;
ALTER TABLE inbox_messages DROP CONSTRAINT inbox_messages_received_at_tellable;
ALTER TABLE attempts DROP CONSTRAINT attempts_finished_at_tellable, DROP CONSTRAINT attempts_started_at_tellable;
ALTER TABLE orders
    DROP CONSTRAINT orders_created_at_tellable, DROP CONSTRAINT orders_updated_at_tellable, DROP COLUMN minimised_at;
ALTER TABLE operations
    DROP CONSTRAINT operations_times_tellable,
    DROP CONSTRAINT operations_finished_at_tellable,
    DROP CONSTRAINT operations_minimised_when_final,
    DROP COLUMN minimised_at;
DROP FUNCTION is_tellable(timestamptz);
DROP FUNCTION without_personal_data(bytea);
DROP FUNCTION without_personal_members(jsonb);
