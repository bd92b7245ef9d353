-- +goose Up

-- The operations whose invoice a run has seen in the ERP's list, so that it asks by key only for the others. A run's own
-- scratch, emptied at its end. Unlogged: should a crash of the server empty it, the run asks more questions.
CREATE UNLOGGED TABLE reconciliation_matches (
    run_id       uuid NOT NULL,
    operation_id uuid NOT NULL,
    CONSTRAINT reconciliation_matches_pkey PRIMARY KEY (run_id, operation_id)
);

-- +goose Down
DROP TABLE reconciliation_matches;
