-- +goose Up
set local lock_timeout = '2s';

-- Titles are found by an index. The follower of searches makes it in the background for
-- all conversations, and searches tell what isn't indexed yet.

create table title_words (
    conversation_id uuid not null references conversations (id) on delete cascade,
    word            text collate "C" not null,
    tenant_id       text not null,

    primary key (conversation_id, word)
);

create index title_words_found on title_words (tenant_id, word, conversation_id);

delete from follower_places where follower = 'search';

update followers set scanned_id = '00000000-0000-0000-0000-000000000000' where name = 'search';
