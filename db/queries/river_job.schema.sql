-- The part of River's own table that our queries read. River's migrations make it; this file only tells sqlc its types.
CREATE TYPE river_job_state AS ENUM (
    'available', 'cancelled', 'completed', 'discarded', 'pending', 'retryable', 'running', 'scheduled'
);
CREATE TABLE river_job (
    id           bigint          NOT NULL,
    kind         text            NOT NULL,
    queue        text            NOT NULL,
    state        river_job_state NOT NULL,
    args         jsonb           NOT NULL,
    attempted_at timestamptz,
    scheduled_at timestamptz     NOT NULL
);
