-- The whole schema as it stands. db/migrate/migrations leads here, and a
-- test holds the two equal.
--
-- Rules every table of the tree keeps, so that the same schema runs on plain
-- Postgres 14 and later and, distributed by conversation, on Citus:
-- a primary key, foreign key or unique constraint contains the conversation's
-- id; ids (UUIDv7) and timestamps are made by the program; no triggers.

-- One tree of messages and summaries.
create table conversations (
    id         uuid        primary key,    -- UUIDv7, or the client's own
    tenant_id  text        not null,       -- whose it is; 'default' where nobody made a key
    title      text        not null,       -- '' until somebody names it
    metadata   json        not null,       -- the client's own object, given back as it came
    settings   json        not null,       -- compaction settings that differ from the server's
    head_id    uuid,                       -- the active head, null while there is no message; no foreign key, as a prune moves it under the row's lock
    created_at timestamptz not null,       -- when it was made, here or where it was imported from
    updated_at timestamptz not null,       -- when something was last said or pruned; a change of the columns above is neither
    message_count integer  not null default 0, -- messages among its nodes, so that a limit costs an append nothing; who changes them holds the row's lock
    -- forks only, so that a fork asked for again is recognized; no foreign keys, because the source may go
    source_conversation_id uuid,           -- conversation that it was forked from
    source_message_id      uuid,           -- message whose path was copied
    source_request         bytea,          -- SHA-256 of the title, metadata and settings that the request brought
    change_count bigint    not null default 0, -- changes so far, the sequence of the newest row of changes; who changes it holds the row's lock
    -- the tenant's order; a fork begins with neither of the first two, and with the tags
    archived boolean not null default false, -- left out of lists unless they are asked for
    pinned   boolean not null default false, -- stands first in lists
    tags     text[]  not null default '{}',  -- words by which it is found again, in the order they were given
    owner_id text not null default '',       -- which of the tenant's people made it; '' for none in particular
    reader   text not null default '',       -- the only one of them who reads it, who is the owner; '': all of them do
    path_form smallint default 2,            -- canonical form of messages that its path hashes are made of; null: that of versions before 27, until a client's history is looked for
    updated_minute timestamptz not null generated always as (date_bin('1 minute', updated_at, timestamptz '2000-01-01 00:00:00+00')) stored,

    constraint conversations_reader check (reader in ('', owner_id)),
    constraint conversations_source check (num_nulls(source_conversation_id, source_message_id, source_request) in (0, 3))
);

-- A tenant's conversations: the pinned first, and of both sorts the one in which
-- something was last said or pruned. It holds the minute, and lists sort within one: an
-- append in the same minute changes no indexed column, and so no index (HOT). Without the
-- id, a small tenant's look-ups by ids would take this smaller index, and read all it has.
create index conversations_listed on conversations (tenant_id, archived, pinned desc, updated_minute desc, id);

-- For the list of a tenant's tags.
create index conversations_tagged on conversations (tenant_id) where tags <> '{}';

-- What was said, and the summaries of it.
create table nodes (
    conversation_id uuid        not null references conversations (id) on delete cascade, -- whose it is: ids are unique within it
    id              uuid        not null,  -- UUIDv7, or the client's own
    parent_id       uuid,                  -- message before this one, null for a root; for a summary, its anchor
    kind            text        not null,  -- 'message' or 'summary'
    role            text        not null,  -- of the message; 'user' for a summary, as a context shows it
    sibling_index   integer,               -- 1 for the first child message of the parent (or first root), 2 for the next, no gaps; null for a summary
    depth           integer     not null,  -- messages above this one: 0 for a root
    tokens          integer     not null,  -- of this message, counted once, when it was appended
    path_tokens     bigint      not null,  -- sum of tokens from the root to this message, both included
    prefix_id       uuid,                  -- last of the leading system and developer messages of the path, null if it has none;
                                           -- inherited from the parent, so that a context finds its prefix without walking to the root
    pinned          boolean     not null,  -- stays verbatim when it is folded
    created_at      timestamptz not null,  -- when it was said, here or where it was imported from
    body            json        not null,  -- chat-completions message object, byte for byte as it was given
    metadata        json,                  -- the client's own object, null for none
    -- summaries only
    last_summarized_id uuid,               -- cutoff: last message that the summary replaces; the anchor or an ancestor of it
    prior_summary_id   uuid,               -- summary that was merged into this one; no foreign key, as that one may be undone
    kept_ids           uuid[],             -- folded messages that stay verbatim in its body, oldest first
    model              text,               -- what wrote it
    -- of both
    origin             json,               -- where the text comes from, null where it was said or written here. Of a summary an import:
                                           -- {imported_at, format, first_imported_at?, merged?}; of a message another branch: {from_head_id, ancestor_id, messages, include, model, instructions}
    -- messages only
    path_hash          bytea,              -- 16 bytes that name the message and all above it by what they mean, so that a client that keeps no ids is
                                           -- recognized; null where the path's root has none
    reasoning          text,                -- what the model thought before it said this, null for none: shown to people, and no part of a context

    primary key (conversation_id, id),
    constraint nodes_parent foreign key (conversation_id, parent_id) references nodes (conversation_id, id),
    constraint nodes_cutoff foreign key (conversation_id, last_summarized_id) references nodes (conversation_id, id),
    constraint nodes_kind check (kind in ('message', 'summary')),
    constraint nodes_role check (role in ('system', 'developer', 'user', 'assistant', 'tool')),
    constraint nodes_message check (kind <> 'message' or
        (sibling_index is not null and last_summarized_id is null and prior_summary_id is null and kept_ids is null and model is null)),
    constraint nodes_summary check (kind <> 'summary' or
        (sibling_index is null and parent_id is not null and last_summarized_id is not null and kept_ids is not null and model is not null
         and not pinned and role = 'user')),
    constraint nodes_path_hash check (path_hash is null or kind = 'message'),
    constraint nodes_reasoning check (reasoning is null or kind = 'message' and role = 'assistant')
);

-- Two appends under one parent can't take the same index. Children are found by
-- it, and a message's summaries: they are the children whose sibling_index is
-- null. Without roots, as Postgres would otherwise look ids up in it while the
-- table is small, and read whole conversations.
create unique index nodes_siblings on nodes (conversation_id, parent_id, sibling_index) where parent_id is not null;

-- The same for roots.
create unique index nodes_roots on nodes (conversation_id, sibling_index) where parent_id is null;

-- Messages by the first seven bytes of their path hash, with which an entry takes
-- half the room. Two may have the same hash: answers that say the same.
create index nodes_paths on nodes (conversation_id, substring(path_hash for 7)) where path_hash is not null;

-- For the check that a message about to go is no summary's cutoff.
create index nodes_cutoffs on nodes (conversation_id, last_summarized_id) where last_summarized_id is not null;

-- Which words messages have, made after the append by a follower of changes: up to
-- 64 messages of a conversation, in the order in which they came.
create table search_chunks (
    conversation_id uuid        not null references conversations (id) on delete cascade, -- whose messages it has
    number          integer     not null,  -- grows with the chunks of a conversation: place of the first message in the order in which they came
    tenant_id       text        not null,  -- of the conversation
    messages        uuid[]      not null,  -- that it has; no foreign key: a prune takes its messages out
    newest_at       timestamptz not null,  -- time of the newest of them
    data            bytea,                 -- in bits: hashes of words, and which of the messages have them; null where a message was pruned, until it is made again
    segment         uuid,                  -- that names it; null while it is looked at by each search
    place           smallint,              -- in the segment

    primary key (conversation_id, number),
    constraint search_chunks_place check ((segment is null) = (place is null) and (segment is null or data is not null)),
    constraint search_chunks_version check (substring(data for 1) <> '\x01') -- so that no program before version 28 stores its kind
);

-- Hashes don't compress.
alter table search_chunks alter column data set storage external;

-- A tenant's chunks that no segment names, and those of a conversation among them.
create index search_chunks_loose on search_chunks (tenant_id, conversation_id) where segment is null;

-- The chunks that a segment names.
create index search_chunks_placed on search_chunks (segment, place) where segment is not null;

-- Which of a tenant's chunks have a word: 32 chunks together in a small segment, and
-- 1,024 in a large one, by the beginning of the word's hash. The tenant leads the key,
-- so that no search reads another's. A prune empties the parts, of 32
-- chunks, that name its chunk; they are named again. On Citus it is distributed by tenant_id.
create table search_segments (
    tenant_id text        not null,  -- whose chunks it names
    bucket    smallint    not null,  -- first bits of the hashes in it: from 256 on 6 bits, of a small segment; from 512 on 11, of a large one
    segment   uuid        not null,  -- UUIDv7
    newest_at timestamptz not null,  -- time of the newest message in it
    data      bytea       not null,  -- in bits: the rest of each hash, and the places of the chunks that have it

    primary key (tenant_id, bucket, segment),
    constraint search_segments_bucket check (bucket >= 256) -- so that no program before version 31 stores its kind
);

alter table search_segments alter column data set storage external;

-- By which words titles are found, made by the follower that makes the chunks: a text in
-- lower case without accents, of 64 letters at most.
create table title_words (
    conversation_id uuid not null references conversations (id) on delete cascade, -- whose title it is
    word            text collate "C" not null,
    tenant_id       text not null,  -- of the conversation

    primary key (conversation_id, word)
);

-- A tenant's conversations with a word, or with the beginning of one.
create index title_words_found on title_words (tenant_id, word, conversation_id);

-- One row for every compaction that ran, whatever came of it. It names nodes
-- without foreign keys, because it outlives them.
create table compactions (
    conversation_id   uuid        not null references conversations (id) on delete cascade, -- whose it is
    id                uuid        not null,  -- UUIDv7; the fence around what its summarizer reads derives from it
    head_id           uuid        not null,  -- branch that was compacted
    anchor_id         uuid,                  -- of the plan; null where there was none
    cutoff_id         uuid,                  -- of the plan; null where there was none
    summary_id        uuid,                  -- node that was saved, null for other outcomes
    prior_summary_id  uuid,                  -- summary that was to be merged
    trigger           text        not null,  -- 'append', 'reply' or 'request': what asked for it; 'graft': a text to bring to another branch, of which there is no summary; 'healing' of versions before 24
    outcome           text        not null,  -- 'saved', 'nothing_to_do', 'no_gain', 'superseded', 'stale' or 'failed'
    reason            text        not null,  -- why that outcome, for people
    model             text        not null,  -- what wrote the summary, '' where nothing did
    instructions      text        not null,  -- of the caller, '' for none
    settings          json        not null,  -- budget and settings it was planned with, so that a replay plans the same
    attempts          json        not null,  -- [{model, error, prompt_tokens, completion_tokens, reasoning_tokens, duration_ms}], every call of a model
    messages_before   integer     not null,  -- messages in the context before it
    messages_after    integer     not null,  -- and after it
    tokens_before     bigint      not null,  -- tokens in the context before it
    tokens_after      bigint      not null,  -- and after it
    folded_messages   integer     not null,  -- messages that it newly folded
    folded_tokens     bigint      not null,  -- and their tokens
    prompt_tokens     bigint      not null,  -- tokens that all attempts sent
    completion_tokens bigint      not null,  -- and got
    duration_ms       bigint      not null,  -- from reading the branch to saving, in milliseconds
    created_at        timestamptz not null,  -- when it ended
    remade_id         uuid,                  -- summary that was to be made again; null where messages were folded for the first time

    primary key (conversation_id, id),
    constraint compactions_trigger check (trigger in ('append', 'reply', 'request', 'graft', 'healing')),
    constraint compactions_outcome check (outcome in ('saved', 'nothing_to_do', 'no_gain', 'superseded', 'stale', 'failed'))
);

-- A conversation's compactions, newest first.
create index compactions_recent on compactions (conversation_id, created_at desc, id desc);

-- Answers that are being written, and those that ended lately. The row is inserted
-- with the question, before the model is called. The server that runs the reply
-- gives a sign of life twice a second. Where it gives none, another server, or the
-- same after its start, takes the row and stores what the log holds as the answer.
-- A prune deletes the rows of what it deletes.
create table replies (
    conversation_id uuid        not null references conversations (id) on delete cascade, -- whose it is
    message_id      uuid        not null,  -- that the answer has, or will have; no foreign key, as it may never be stored
    parent_id       uuid,                  -- message that is answered; null only of a deleted answer that is a root
    move_head_from  uuid,                  -- active head that the answer takes the place of, null where it becomes the active head only if there is none
    server_id       text        not null,  -- server that runs the reply: what another one brings is refused
    model           text        not null,  -- that is asked
    state           text        not null,  -- 'running'; 'stopping', where another server asked for its end; 'stored' as a message; 'ended' with nothing to store; 'deleted', where other branches go on from its answer
    metadata        json        not null,  -- of the answer: what the request adds, and in the state 'ended' how the reply ended
    alive_at        timestamptz not null,  -- last sign of life, or when the reply ended
    end_event       integer,               -- id of the event that tells the end; null while the reply runs, and where readers may have had events that the log lacks

    primary key (conversation_id, message_id),
    constraint replies_state check (state in ('running', 'stopping', 'stored', 'ended', 'deleted'))
);

-- Replies that run, and those that are over, to be forgotten some time later. The
-- time is no part of it: else each sign of life would write all indexes.
create index replies_by_state on replies (state);

-- The log of a reply: events as its readers get them, in the order they came. Rows
-- are only added, and go with the reply's row. It is logged, because a crash of
-- Postgres empties unlogged tables.
create table reply_events (
    conversation_id uuid    not null,  -- whose it is
    message_id      uuid    not null,  -- of which reply
    sequence        integer not null,  -- id of the last event in the payload
    payload         json    not null,  -- events in the form of package reply: all that were new at one save

    primary key (conversation_id, message_id, sequence),
    constraint reply_events_reply foreign key (conversation_id, message_id) references replies (conversation_id, message_id) on delete cascade
);

-- What of a message's meaning a model of the operator's has put into numbers,
-- for recall. Empty where no such model is configured. An append adds nothing
-- here: a background job does.
create table embeddings (
    conversation_id uuid   not null,  -- whose it is
    message_id      uuid   not null,  -- that the vector is of
    model           text   not null,  -- that made the vector, and of how many dimensions if that was asked for
    tenant_key      text   not null,  -- 8 characters of its tenant's hash, so that no index of vectors has its name
    stamp           bigint not null,  -- grows with each batch of the conversation, in microseconds since 1970, so that a reader asks for what is new
    vector          bytea,            -- a byte for each dimension, 128 for zero, 255 for the largest; null where the message says nothing that can be embedded

    primary key (conversation_id, message_id),
    constraint embeddings_message foreign key (conversation_id, message_id) references nodes (conversation_id, id) on delete cascade
);

-- A conversation's vectors from a stamp on; also to count them.
create index embeddings_new on embeddings (conversation_id, model, stamp);

-- A tenant's newest vectors, of all its conversations.
create index embeddings_recent on embeddings (tenant_key, model, stamp) where vector is not null;

-- The numbers of a vector, which pgvector's types can be made of. Where that
-- extension is there and a tenant has many vectors, the program makes an index
-- of them, for that tenant alone.
create function embedding_values(vector bytea) returns real[]
    language sql immutable strict parallel safe
    return array(select (get_byte(vector, i) - 128)::real from generate_series(0, octet_length(vector) - 1) i);

-- What readers say of messages. It is apart from nodes, so that an append stays what it
-- is, and a message that is rated keeps its row's version, and with it its vector.
create table annotations (
    conversation_id uuid     not null,  -- whose it is
    message_id      uuid     not null,  -- that it is about
    rating          smallint not null,  -- 1 or -1; 0 for none
    label           text     not null,  -- a few words by which the message, or the branch that ends in it, is found again; '' for none
    note            text     not null,  -- '' for none

    primary key (conversation_id, message_id),
    constraint annotations_message foreign key (conversation_id, message_id) references nodes (conversation_id, id) on delete cascade,
    constraint annotations_rating check (rating in (-1, 0, 1))
);

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

-- What changed of late, for streams of events and followers: ids, and no text. A row is written in
-- the transaction of its change. It is deleted an hour later. No foreign key: a
-- deleted conversation is told, too.
create table changes (
    conversation_id uuid        not null,  -- what changed
    sequence        bigint      not null,  -- conversations.change_count after the change: no gaps, in the order of the commits
    tenant_id       text        not null,  -- whose it is
    kind            text        not null,  -- name of the event; no check, so that a later version may have more
    message_id      uuid,                  -- message or summary that it is about, the last one of several
    parent_id       uuid,                  -- above it, or above the first one of several
    head_id         uuid,                  -- active head after the change
    messages        integer     not null,  -- how many messages were added or deleted
    at              timestamptz not null,  -- when the server that made the change noted it

    primary key (conversation_id, sequence)
);

-- A tenant's changes from a time on.
create index changes_recent on changes (tenant_id, at);

-- Up to which change each follower handled a conversation. What is behind
-- conversations.change_count is to be handled. No row: nothing was handled yet. It
-- is apart from conversations, so that followers and appends don't wait for each other.
-- No foreign key: its check would lock the conversation's row, and wait for its deletion.
create table follower_places (
    conversation_id uuid   not null,  -- that was handled
    follower        text   not null,  -- its name
    sequence        bigint not null,  -- conversations.change_count as the follower saw it

    primary key (conversation_id, follower)
);

-- The followers, and for each the one server that looks for what no server's own
-- appends told it. On Citus it stays on the coordinator.
create table followers (
    name         text        primary key, -- as in follower_places; attachments for who sweeps them
    server_id    text        not null,    -- server that looks
    leads_until  timestamptz not null,    -- by the database's clock: then another server may look
    scanned_id   uuid                     -- of a look at all conversations, in the order of their ids, the last one that was handled; null when it is done
);

-- Pictures and files that messages name, each once in a tenant, by its content.
-- On Citus it is distributed by tenant_id.
create table attachments (
    tenant_id   text        not null,  -- whose it is
    hash        bytea       not null,  -- SHA-256 of bytes
    media_type  text        not null,  -- as the bytes say, whatever the upload said
    name        text        not null,  -- of the file that was uploaded first; a message may call it something else
    size        integer     not null,  -- of bytes
    width       integer     not null,  -- of a picture in pixels, 0 of a file
    height      integer     not null,  -- of a picture in pixels, 0 of a file
    tokens      integer     not null,  -- of a file's text; 0 of a picture, whose tokens follow from its pixels
    said        text        not null,  -- what a model reads of a file, '' of a picture
    bytes       bytea       not null,  -- as they came
    uploaded_at timestamptz not null,  -- last; what no message names is deleted some time after

    primary key (tenant_id, hash)
);

-- Compression would cost time and save nothing: pictures and PDFs are compressed.
alter table attachments alter column bytes set storage external;

-- Which messages name which attachments. It may name one that isn't there,
-- because a file of an import can lack it.
create table attachment_uses (
    conversation_id uuid  not null,  -- whose message it is
    message_id      uuid  not null,  -- that names it
    hash            bytea not null,  -- of the attachment
    tenant_id       text  not null,  -- of the conversation

    primary key (conversation_id, message_id, hash),
    constraint attachment_uses_message foreign key (conversation_id, message_id) references nodes (conversation_id, id) on delete cascade
);

-- Whether a message names an attachment still.
create index attachment_uses_hash on attachment_uses (tenant_id, hash);

-- Keys that clients show. Only their hashes are stored.
create table api_keys (
    id           uuid        primary key,  -- names the key where it is listed or revoked
    tenant_id    text        not null,     -- whose conversations it opens
    name         text        not null,     -- for people: what the key is used for
    key_hash     bytea       not null unique, -- SHA-256 of the whole key; of a key that may do less or more than all of a tenant, with a word before it, so that
                                              -- no program before version 32 takes it for one that may do all. The key itself is shown once and not stored
    created_at   timestamptz not null,     -- when it was made
    last_used_at timestamptz,              -- to about a minute
    revoked_at   timestamptz,              -- null while the key is good
    role         text        not null default 'admin', -- 'member', 'admin' of the tenant, or 'operator' of all tenants
    user_id      text        not null default '',      -- whose it is; '' is the tenant itself
    read_only    boolean     not null default false,   -- it changes nothing
    conversation_id uuid,                  -- the only one that it opens; null: any
    expires_at   timestamptz               -- null: it doesn't
);

-- Who did what: deletions, exports, links, keys. Ids and no text of messages. Rows
-- outlive what they tell of, and their tenant.
create table audit_events (
    tenant_id       text        not null,  -- whose data it was
    id              uuid        not null,  -- UUIDv7, so that the order of ids is that of time
    at              timestamptz not null,  -- when
    action          text        not null,  -- what was done, such as conversation.deleted; no check, so that a later version may have more
    conversation_id uuid,                  -- that it was done to
    subject_id      uuid,                  -- what in it, or which key
    detail          text        not null,  -- more of it, for people; '' for nothing
    key_id          uuid,                  -- key that asked for it; null for none, and for the program itself
    user_id         text        not null,  -- who asked for it; '' for no one in particular
    address         text        not null,  -- of the client; '' for a command on the database and for the program itself
    request_id      text        not null,  -- as in the log; '' for none

    primary key (tenant_id, id)
);

-- What is true of the whole installation. One row, which its migration made.
create table installation (
    only_row boolean not null default true primary key check (only_row), -- keeps it at one row
    secret   bytea   not null, -- 32 random bytes; ids that derive from names are a MAC under it, so that nobody outside can compute them
    oldest_program integer not null default 14, -- the oldest schema version whose program works with this schema, while versions change
    settings jsonb   not null default '{}' -- of contexts and compactions, on the server that started last; commands take theirs from it
);

-- What a tenant used in a day of UTC. Servers add what they counted each two seconds, so
-- that no request writes here.
create table tenant_days (
    tenant_id text             not null,
    day       date             not null,
    requests  bigint           not null, -- that had a good key, or a session
    messages  bigint           not null, -- that were stored
    bytes     bigint           not null, -- of those messages, and of files
    cost      double precision not null, -- of calls of models, where prices are known

    primary key (tenant_id, day)
);

-- How much a tenant may use in a day. 0 is any amount.
create table tenant_limits (
    tenant_id text             primary key,
    requests  bigint           not null,
    messages  bigint           not null,
    bytes     bigint           not null,
    cost      double precision not null
);
