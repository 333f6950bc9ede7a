-- What a database of schema version 23 may hold.

-- The tree, all in the tenant default:
--
--   system ─ question ┬ answer ─ ask ─ call ─ result ← active
--                     │   └ (first summary)       └ (second summary)
--                     ├ other, pinned
--                     └ third ─ thanks
insert into conversations (id, tenant_id, title, metadata, settings, head_id, message_count, created_at, updated_at) values
    ('01990000-0000-7000-8000-000000000001', 'default', 'Coppicing', '{"b": 1.0, "a": "é"}', '{"max_context_tokens": 4000, "reserved_tokens": 500}',
     '01990000-0000-7000-8000-000000000107', 9, '2026-03-01 10:00:00.000001+00', '2026-03-01 11:00:00+00'),
    ('01990000-0000-7000-8000-000000000002', 'default', '', '{}', '{}', null, 0, '2026-03-02 10:00:00+00', '2026-03-02 10:00:00+00'),
    ('01990000-0000-7000-8000-000000000003', 'acme', 'Of another tenant', '{}', '{}',
     '01990000-0000-7000-8000-000000000301', 1, '2026-03-03 10:00:00+00', '2026-03-03 10:00:00+00');

insert into conversations (id, tenant_id, title, metadata, settings, created_at, updated_at, source_conversation_id, source_message_id, source_request) values
    ('01990000-0000-7000-8000-000000000004', 'default', 'A fork, pruned', '{"forked_from":{}}', '{}', '2026-03-01 12:00:00+00', '2026-03-01 12:00:00+00',
     '01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000102', sha256('what the request said'));

insert into nodes (conversation_id, id, parent_id, kind, role, sibling_index, depth, tokens, path_tokens, prefix_id, pinned, created_at, body, search_text, metadata, search_key) values
    ('01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000101', null, 'message', 'system', 1, 0, 6, 6,
     '01990000-0000-7000-8000-000000000101', false, '2026-03-01 10:01:00+00', '{"role":"system","content":"Be brief."}', null, null, 'N6juwc4Za'),
    ('01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000102', '01990000-0000-7000-8000-000000000101', 'message', 'user', 1, 1, 9, 15,
     '01990000-0000-7000-8000-000000000101', false, '2026-03-01 10:02:00+00', '{"content":"What is a coppice?",  "role":"user"}', null, '{"client":"cli"}', 'N6juwc4Zb'),
    ('01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000103', '01990000-0000-7000-8000-000000000102', 'message', 'assistant', 1, 2, 14, 29,
     '01990000-0000-7000-8000-000000000101', false, '2026-03-01 10:03:00+00', '{"role":"assistant","content":"A wood that is cut so that it grows again."}', null, null, 'N6juwc4Zc'),
    ('01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000104', '01990000-0000-7000-8000-000000000102', 'message', 'assistant', 2, 2, 7, 22,
     '01990000-0000-7000-8000-000000000101', true, '2026-03-01 10:04:00+00', '{"role":"assistant","content":"A kind of hedge."}', null, null, 'N6juwc4Zm'),
    ('01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000105', '01990000-0000-7000-8000-000000000103', 'message', 'user', 1, 3, 10, 39,
     '01990000-0000-7000-8000-000000000101', false, '2026-03-01 10:05:00+00', '{"role":"user","content":[{"type":"text","text":"Which trees? Look it up."}]}', 'Which trees? Look it up.', null, 'N6juwc4Za'),
    ('01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000106', '01990000-0000-7000-8000-000000000105', 'message', 'assistant', 1, 4, 25, 64,
     '01990000-0000-7000-8000-000000000101', false, '2026-03-01 10:06:00+00',
     '{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"look_up","arguments":"{\"word\":\"coppice\"}"}}]}', null, null, 'N6juwc4Zb'),
    ('01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000107', '01990000-0000-7000-8000-000000000106', 'message', 'tool', 1, 5, 12, 76,
     '01990000-0000-7000-8000-000000000101', false, '2026-03-01 10:07:00+00', '{"role":"tool","tool_call_id":"call_1","content":"hazel, ash, oak"}', null, null, 'N6juwc4Zc'),
    ('01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000108', '01990000-0000-7000-8000-000000000102', 'message', 'assistant', 3, 2, 6, 21,
     '01990000-0000-7000-8000-000000000101', false, '2026-03-01 10:08:00+00', '{"role":"assistant","content":"No idea."}', null, null, 'N6juwc4Zm'),
    ('01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000109', '01990000-0000-7000-8000-000000000108', 'message', 'user', 1, 3, 5, 26,
     '01990000-0000-7000-8000-000000000101', false, '2026-03-01 10:09:00+00', '{"role":"user","content":"Thanks!"}', null, null, 'N6juwc4Za'),
    ('01990000-0000-7000-8000-000000000003', '01990000-0000-7000-8000-000000000301', null, 'message', 'user', 1, 0, 5, 5,
     null, false, '2026-03-03 10:00:00+00', '{"role":"user","content":"A secret of acme"}', null, null, 'giszrYfBb');

insert into nodes (conversation_id, id, parent_id, kind, role, depth, tokens, path_tokens, prefix_id, pinned, created_at, body, metadata,
                   last_summarized_id, prior_summary_id, kept_ids, model, origin) values
    ('01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000201', '01990000-0000-7000-8000-000000000103', 'summary', 'user', 3, 8, 37,
     '01990000-0000-7000-8000-000000000101', false, '2026-03-01 10:03:30+00', '{"role":"user","content":"A coppice was asked about."}', null,
     '01990000-0000-7000-8000-000000000102', null, '{}', 'test', '{"imported_at":"2026-03-01T10:03:40Z","format":"coppice","first_imported_at":null,"merged":false}'),
    ('01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000202', '01990000-0000-7000-8000-000000000107', 'summary', 'user', 6, 11, 87,
     '01990000-0000-7000-8000-000000000101', false, '2026-03-01 10:10:00+00', '{"role":"user","content":"A coppice was explained, and trees were asked about."}', '{"kept_characters":[18]}',
     '01990000-0000-7000-8000-000000000103', '01990000-0000-7000-8000-000000000201', '{01990000-0000-7000-8000-000000000102}', 'test', null);

-- Of "cop_" and 43 times "a", and 43 times "b".
insert into api_keys (id, tenant_id, name, key_hash, created_at, last_used_at, revoked_at) values
    ('01990000-0000-7000-8000-000000000901', 'acme', 'a phone', sha256('cop_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'), '2026-03-01 09:00:00+00', '2026-03-04 09:00:00+00', null),
    ('01990000-0000-7000-8000-000000000902', 'default', 'an old one', sha256('cop_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'), '2026-03-01 09:00:00+00', null, '2026-03-02 09:00:00+00');

insert into compactions (conversation_id, id, head_id, anchor_id, cutoff_id, summary_id, prior_summary_id, trigger, outcome, reason, model, instructions,
                         settings, attempts, messages_before, messages_after, tokens_before, tokens_after, folded_messages, folded_tokens,
                         prompt_tokens, completion_tokens, duration_ms, created_at) values
    ('01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000401', '01990000-0000-7000-8000-000000000107', '01990000-0000-7000-8000-000000000107',
     '01990000-0000-7000-8000-000000000103', '01990000-0000-7000-8000-000000000202', '01990000-0000-7000-8000-000000000201', 'request', 'saved', '2 messages folded.', 'test',
     'Mind the trees.', '{"max_context_tokens":4000}', '[{"model":"test","prompt_tokens":100,"completion_tokens":11,"duration_ms":5}]', 7, 6, 76, 64, 1, 14, 100, 11, 7, '2026-03-01 10:10:00+00'),
    ('01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000402', '01990000-0000-7000-8000-000000000109', null, null, null, null,
     'request', 'nothing_to_do', 'Nothing to fold.', '', '', '{}', '[]', 4, 4, 26, 26, 0, 0, 0, 0, 1, '2026-03-01 10:11:00+00');

-- A job that was waiting when the old program stopped.
insert into river_job (state, max_attempts, args, kind, metadata, queue) values
    ('available', 6, '{"tenant_id": "default", "conversation_id": "01990000-0000-7000-8000-000000000001", "head_id": "01990000-0000-7000-8000-000000000107"}', 'compaction', '{}', 'default');

insert into reply_checkpoints (conversation_id, message_id, parent_id, move_head_from, server_id, model, content, refusal, saved_at) values
    ('01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000110', '01990000-0000-7000-8000-000000000107', '01990000-0000-7000-8000-000000000107',
     'a host 127.0.0.1:8080', 'test', 'Hazel, ash and', '', '2026-03-01 10:12:00+00');

insert into compactions (conversation_id, id, head_id, anchor_id, cutoff_id, summary_id, prior_summary_id, remade_id, trigger, outcome, reason, model, instructions,
                         settings, attempts, messages_before, messages_after, tokens_before, tokens_after, folded_messages, folded_tokens,
                         prompt_tokens, completion_tokens, duration_ms, created_at) values
    ('01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000403', '01990000-0000-7000-8000-000000000107', '01990000-0000-7000-8000-000000000107',
     '01990000-0000-7000-8000-000000000103', null, null, '01990000-0000-7000-8000-000000000202', 'healing', 'failed', 'No summarizer gave a summary.', '',
     '', '{"max_context_tokens":4000}', '[]', 6, 6, 64, 64, 1, 14, 100, 0, 7, '2026-03-01 10:14:00+00');

insert into reply_states (conversation_id, message_id, state, metadata, at) values
    ('01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000110', 'running', '{"openai":{}}', '2026-03-01 10:12:00+00'),
    ('01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000103', 'deleted', '{}', '2026-03-01 10:12:00+00');

update reply_checkpoints set marks = '\x000500000900', started = '{"context":{"usage":{"context_tokens":7}}}'
where message_id = '01990000-0000-7000-8000-000000000110';

update installation set settings = '{"max_context_tokens": 32768, "reserved_tokens": 4096}';

insert into shares (conversation_id, id, head_id, secret_hash, summaries, created_at, expires_at) values
    ('01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000901', '01990000-0000-7000-8000-000000000107', sha256('the secret of a link'), true, '2026-03-01 13:00:00+00', null);

update conversations set archived = true, tags = '{wood,"two words"}' where id = '01990000-0000-7000-8000-000000000004';
update conversations set pinned = true where id = '01990000-0000-7000-8000-000000000001';
