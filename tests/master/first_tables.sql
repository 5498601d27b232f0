-- The first form of the tables, as SQLite has it: `old_databases.py` makes that of Postgres of it.
CREATE TABLE alembic_version ( version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY
    (version_num) );
CREATE TABLE bundles ( id VARCHAR(64) NOT NULL, manifest JSON NOT NULL, checked BOOLEAN NOT NULL, created VARCHAR(32)
    NOT NULL, CONSTRAINT pk_bundles PRIMARY KEY (id) );
CREATE TABLE experiments ( id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, owner VARCHAR(64) NOT NULL, name TEXT NOT
    NULL, state VARCHAR(32) NOT NULL, config JSON NOT NULL, bundle_id VARCHAR(64) NOT NULL, framework VARCHAR(16) NOT
    NULL, metric TEXT NOT NULL, smaller_is_better BOOLEAN NOT NULL, test BOOLEAN NOT NULL, report JSON NOT NULL,
    searcher JSON, progress FLOAT NOT NULL, best_validation FLOAT, error JSON, idempotency_key VARCHAR(200),
    idempotency_hash VARCHAR(64), collected BOOLEAN NOT NULL, created VARCHAR(32) NOT NULL, ended VARCHAR(32),
    CONSTRAINT fk_experiments_bundle_id FOREIGN KEY(bundle_id) REFERENCES bundles (id), CONSTRAINT
    uq_experiments_owner_idempotency_key UNIQUE (owner, idempotency_key) );
CREATE INDEX ix_experiments_state ON experiments (state);
CREATE TABLE trials ( id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, experiment_id INTEGER NOT NULL, request INTEGER
    NOT NULL, state VARCHAR(16) NOT NULL, hparams JSON NOT NULL, seed BIGINT NOT NULL, restarts INTEGER NOT NULL,
    run_id VARCHAR(32), target_batches BIGINT NOT NULL, best_validation FLOAT, error JSON, fingerprint TEXT, created
    VARCHAR(32) NOT NULL, started VARCHAR(32), ended VARCHAR(32), CONSTRAINT fk_trials_experiment_id FOREIGN
    KEY(experiment_id) REFERENCES experiments (id), CONSTRAINT uq_trials_experiment_id_request UNIQUE (experiment_id,
    request) );
CREATE INDEX ix_trials_state ON trials (state);
CREATE TABLE runs ( run_id VARCHAR(32) NOT NULL, trial_id INTEGER NOT NULL, number INTEGER NOT NULL, state VARCHAR(16)
    NOT NULL, start_batch BIGINT NOT NULL, resume VARCHAR(64), last_seq BIGINT NOT NULL, batches BIGINT NOT NULL,
    training_rows BIGINT NOT NULL, training_last BIGINT NOT NULL, validation_rows BIGINT NOT NULL, validation_last
    BIGINT NOT NULL, token_hash VARCHAR(64) NOT NULL, slots JSON NOT NULL, handle JSON, exit JSON, log_offset BIGINT
    NOT NULL, created VARCHAR(32) NOT NULL, ended VARCHAR(32), CONSTRAINT pk_runs PRIMARY KEY (run_id), CONSTRAINT
    fk_runs_trial_id FOREIGN KEY(trial_id) REFERENCES trials (id), CONSTRAINT uq_runs_trial_id_number UNIQUE
    (trial_id, number) );
CREATE INDEX ix_runs_state ON runs (state);
CREATE TABLE metrics ( trial_id INTEGER NOT NULL, run INTEGER NOT NULL, kind VARCHAR(16) NOT NULL, batch BIGINT NOT
    NULL, "values" TEXT NOT NULL, CONSTRAINT pk_metrics PRIMARY KEY (trial_id, run, kind, batch), CONSTRAINT
    fk_metrics_trial_id_run FOREIGN KEY(trial_id, run) REFERENCES runs (trial_id, number) ) WITHOUT ROWID;
CREATE TABLE buckets ( trial_id INTEGER NOT NULL, run INTEGER NOT NULL, kind VARCHAR(16) NOT NULL, name TEXT NOT NULL,
    level INTEGER NOT NULL, position BIGINT NOT NULL, first_batch BIGINT NOT NULL, last_batch BIGINT NOT NULL, count
    BIGINT NOT NULL, nans BIGINT NOT NULL, total FLOAT, minimum FLOAT, maximum FLOAT, CONSTRAINT pk_buckets PRIMARY
    KEY (trial_id, run, kind, name, level, position), CONSTRAINT fk_buckets_trial_id_run FOREIGN KEY(trial_id, run)
    REFERENCES runs (trial_id, number) ) WITHOUT ROWID;
CREATE TABLE checkpoints ( uuid VARCHAR(64) NOT NULL, trial_id INTEGER NOT NULL, experiment_id INTEGER NOT NULL,
    run_id VARCHAR(32) NOT NULL, batch BIGINT NOT NULL, state VARCHAR(16) NOT NULL, size BIGINT NOT NULL, location
    TEXT NOT NULL, manifest JSON NOT NULL, created VARCHAR(32) NOT NULL, CONSTRAINT pk_checkpoints PRIMARY KEY (uuid),
    CONSTRAINT fk_checkpoints_experiment_id FOREIGN KEY(experiment_id) REFERENCES experiments (id), CONSTRAINT
    fk_checkpoints_run_id FOREIGN KEY(run_id) REFERENCES runs (run_id), CONSTRAINT fk_checkpoints_trial_id FOREIGN
    KEY(trial_id) REFERENCES trials (id) );
CREATE INDEX ix_checkpoints_experiment_id ON checkpoints (experiment_id);
CREATE INDEX ix_checkpoints_trial_id_batch ON checkpoints (trial_id, batch);
CREATE TABLE logs ( id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, trial_id INTEGER NOT NULL, run_id VARCHAR(32) NOT
    NULL, time VARCHAR(32) NOT NULL, stream VARCHAR(8) NOT NULL, text TEXT NOT NULL, CONSTRAINT fk_logs_trial_id
    FOREIGN KEY(trial_id) REFERENCES trials (id) );
CREATE INDEX ix_logs_trial_id_id ON logs (trial_id, id);
CREATE TABLE events ( id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, owner VARCHAR(64) NOT NULL, type VARCHAR(16) NOT
    NULL, experiment_id INTEGER NOT NULL, trial_id INTEGER, data JSON NOT NULL, CONSTRAINT fk_events_experiment_id
    FOREIGN KEY(experiment_id) REFERENCES experiments (id) );
CREATE INDEX ix_events_experiment_id_id ON events (experiment_id, id);
CREATE INDEX ix_events_trial_id_type_id ON events (trial_id, type, id);
INSERT INTO alembic_version VALUES ('0001');
