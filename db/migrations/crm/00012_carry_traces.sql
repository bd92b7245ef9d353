-- +goose Up

-- Which trace an operation belongs to, as a W3C traceparent: whoever puts it into the queue, now or in a day (the sweep,
-- an operator), finds it here. Null where nothing was traced. No rule looks at it.
ALTER TABLE operations ADD COLUMN trace_context text;

-- +goose Down
ALTER TABLE operations DROP COLUMN trace_context;
