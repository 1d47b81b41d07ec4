-- The hub's tables. Nothing here is particular to one PostgreSQL: no serial ids, no notifications, no advisory locks.
-- Times are the database's own. Ids are text that a machine or a hub drew at random.

-- One row: the size, root and frontier of the log. It changes by a conditional update only.
CREATE TABLE log_head (
    name TEXT PRIMARY KEY,
    size INT8 NOT NULL CHECK (size >= 0),
    root BYTEA NOT NULL,
    frontier BYTEA NOT NULL
);

CREATE TABLE log_entry (
    idx INT8 PRIMARY KEY CHECK (idx >= 0),
    request TEXT NOT NULL UNIQUE,
    entry BYTEA NOT NULL,
    appended_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

-- The hashes of the log's tiles: level 0 are leaves, a node of level L is the root of 256^L of them.
CREATE TABLE log_node (
    level INT8 NOT NULL,
    idx INT8 NOT NULL,
    hash BYTEA NOT NULL,
    PRIMARY KEY (level, idx)
);

-- Batches of journal heads, by the SHA-256 of their text, which the log holds.
CREATE TABLE head_batch (
    hash TEXT PRIMARY KEY,
    idx INT8 NOT NULL UNIQUE,
    body BYTEA NOT NULL
);

CREATE TABLE member (
    id TEXT PRIMARY KEY,
    role TEXT NOT NULL CHECK (role IN ('machine', 'approver', 'admin')),
    name TEXT NOT NULL,
    subject TEXT NOT NULL UNIQUE, -- the SPIFFE id of its certificates
    key_hash BYTEA, -- null: certificates of another authority, whose keys change
    labels TEXT NOT NULL,
    enrolled_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    revoked_at TIMESTAMPTZ
);

CREATE TABLE enrol_token (
    hash BYTEA PRIMARY KEY,
    role TEXT NOT NULL CHECK (role IN ('machine', 'approver', 'admin')),
    labels TEXT NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    created_by TEXT NOT NULL,
    used_key BYTEA,
    used_by TEXT
);

CREATE TABLE approval (
    id TEXT PRIMARY KEY,
    machine TEXT NOT NULL,
    request TEXT, -- with arguments that the machine redacted; null soon after the answer
    request_hash BYTEA NOT NULL,
    arguments_sha256 TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'allowed', 'denied')),
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    expires_at TIMESTAMPTZ NOT NULL,
    answered_by TEXT,
    answered_at TIMESTAMPTZ,
    remark TEXT,
    used_nonce TEXT,
    used_at TIMESTAMPTZ
);
CREATE INDEX approval_by_state ON approval (state, expires_at);
CREATE INDEX approval_by_machine ON approval (machine, state);

-- `taken` is what is spent for good or may still be spent: whole leases until they return, and what returned ones spent.
CREATE TABLE budget (
    id TEXT PRIMARY KEY,
    unit TEXT NOT NULL CHECK (unit IN ('calls', 'seconds', 'money')),
    total INT8 NOT NULL CHECK (total >= 0),
    taken INT8 NOT NULL DEFAULT 0 CHECK (taken >= 0),
    slice INT8 NOT NULL CHECK (slice > 0),
    lease_ms INT8 NOT NULL CHECK (lease_ms > 0),
    CHECK (taken <= total)
);

CREATE TABLE lease (
    id TEXT PRIMARY KEY,
    budget TEXT NOT NULL,
    machine TEXT NOT NULL,
    wanted INT8 NOT NULL,
    amount INT8 NOT NULL CHECK (amount > 0),
    spent INT8 NOT NULL DEFAULT 0 CHECK (spent >= 0), -- what the holder said; all of it counts until the lease returns
    granted_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    expires_at TIMESTAMPTZ NOT NULL,
    returned_at TIMESTAMPTZ,
    CHECK (spent <= amount)
);
CREATE INDEX lease_by_budget ON lease (budget, machine);

CREATE TABLE journal_head (
    machine TEXT NOT NULL,
    session TEXT NOT NULL,
    seq INT8 NOT NULL CHECK (seq >= 0),
    hash TEXT NOT NULL,
    head TEXT NOT NULL,
    is_anchored BOOL NOT NULL DEFAULT false,
    reported_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (machine, session)
);
CREATE INDEX journal_head_to_anchor ON journal_head (is_anchored, reported_at);

CREATE TABLE inventory (
    machine TEXT PRIMARY KEY,
    body TEXT NOT NULL,
    reported_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE audit (
    id TEXT PRIMARY KEY,
    happened_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL
);
CREATE INDEX audit_by_time ON audit (happened_at);
