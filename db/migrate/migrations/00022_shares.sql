-- +goose Up

-- Links by which anybody reads one branch. Only hashes of their secrets are stored.
create table shares (
    conversation_id uuid        not null references conversations (id) on delete cascade, -- whose branch it is
    id              uuid        not null, -- names the link where it is listed or revoked
    head_id         uuid        not null, -- the branch that it opens; the link goes when this message is pruned
    secret_hash     bytea       not null, -- SHA-256 of the secret in the link; the secret is shown once and not stored
    summaries       boolean     not null, -- whether it shows the summary that applies, too
    created_at      timestamptz not null, -- when it was made
    expires_at      timestamptz,          -- null: it doesn't

    primary key (conversation_id, id),
    constraint shares_head foreign key (conversation_id, head_id) references nodes (conversation_id, id) on delete cascade
);

-- For prunes, which delete what names their messages.
create index shares_by_head on shares (conversation_id, head_id);

-- +goose Down

drop table shares;
