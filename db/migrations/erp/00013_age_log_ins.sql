-- +goose Up

-- An age that is not finite can be compared with nothing.
ALTER TABLE sessions ADD CONSTRAINT sessions_expires_at_tellable CHECK (is_tellable(expires_at));
ALTER TABLE login_failures ADD CONSTRAINT login_failures_last_failed_at_tellable CHECK (is_tellable(last_failed_at));

-- +goose Down
ALTER TABLE login_failures DROP CONSTRAINT login_failures_last_failed_at_tellable;
ALTER TABLE sessions DROP CONSTRAINT sessions_expires_at_tellable;
