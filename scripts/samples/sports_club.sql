CREATE TABLE plans (
    plan_id INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    tier TEXT NOT NULL,
    monthly_fee REAL NOT NULL
);
CREATE TABLE members (
    member_id INTEGER PRIMARY KEY,
    full_name TEXT NOT NULL,
    city TEXT NOT NULL,
    birth_year INTEGER,
    status INTEGER NOT NULL,
    plan_id INTEGER NOT NULL REFERENCES plans (plan_id)
);
CREATE TABLE visits (
    visit_id INTEGER PRIMARY KEY,
    member_id INTEGER NOT NULL REFERENCES members (member_id),
    hall TEXT NOT NULL,
    visit_date TEXT NOT NULL,
    minutes INTEGER NOT NULL
);
CREATE TABLE trainers (
    trainer_id INTEGER PRIMARY KEY,
    full_name TEXT NOT NULL,
    specialty TEXT NOT NULL,
    hourly_rate REAL NOT NULL
);
CREATE TABLE training_sessions (
    session_id INTEGER PRIMARY KEY,
    trainer_id INTEGER NOT NULL REFERENCES trainers (trainer_id),
    member_id INTEGER NOT NULL REFERENCES members (member_id),
    hours REAL NOT NULL,
    rating INTEGER
);
