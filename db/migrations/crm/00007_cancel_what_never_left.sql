-- +goose Up

-- An operation that was tried while the ERP could not be reached was never sent: not one attempt had a connection. Its
-- order may still take it back. The attempts say so, which no CHECK can see; the trigger does instead.
ALTER TABLE operations DROP CONSTRAINT operations_never_sent_when_cancelled;

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION guard_operation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.status IN ('succeeded', 'failed', 'cancelled') AND NEW.status <> OLD.status THEN
        RAISE EXCEPTION 'operation % is % and stays so', OLD.id, OLD.status USING ERRCODE = 'restrict_violation';
    END IF;
    IF NEW.status = 'cancelled' AND OLD.status <> 'cancelled'
       AND (OLD.status <> 'pending' OR OLD.attempt <> (SELECT count(*) FROM attempts
                                                       WHERE operation_id = OLD.id AND outcome = 'not_sent')) THEN
        RAISE EXCEPTION 'something of operation % may have left', OLD.id USING ERRCODE = 'restrict_violation';
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

-- +goose Down
-- +goose StatementBegin
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
ALTER TABLE operations
    ADD CONSTRAINT operations_never_sent_when_cancelled CHECK (status <> 'cancelled' OR attempt = 0) NOT VALID;
