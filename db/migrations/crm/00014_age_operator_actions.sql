-- +goose Up

-- What retention goes by, over all tenants.
CREATE INDEX replay_runs_age_idx ON replay_runs (finished_at, id) WHERE finished_at IS NOT NULL;
CREATE INDEX resolutions_age_idx ON resolutions (decided_at, id) WHERE decided_at IS NOT NULL;

-- An age that is not finite can be compared with nothing.
ALTER TABLE replay_runs ADD CONSTRAINT replay_runs_finished_at_tellable CHECK (is_tellable(finished_at));
ALTER TABLE resolutions ADD CONSTRAINT resolutions_decided_at_tellable CHECK (is_tellable(decided_at));
ALTER TABLE sessions ADD CONSTRAINT sessions_expires_at_tellable CHECK (is_tellable(expires_at));
ALTER TABLE login_failures ADD CONSTRAINT login_failures_last_failed_at_tellable CHECK (is_tellable(last_failed_at));

-- +goose Down
ALTER TABLE login_failures DROP CONSTRAINT login_failures_last_failed_at_tellable;
ALTER TABLE sessions DROP CONSTRAINT sessions_expires_at_tellable;
ALTER TABLE resolutions DROP CONSTRAINT resolutions_decided_at_tellable;
ALTER TABLE replay_runs DROP CONSTRAINT replay_runs_finished_at_tellable;
DROP INDEX resolutions_age_idx;
DROP INDEX replay_runs_age_idx;
