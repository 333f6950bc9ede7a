-- name: InsertSummary :one
-- No row where the anchor is no message of the conversation, or the cutoff is
-- not the anchor or an ancestor of it. The walk ends at the cutoff.
with recursive path as (
    select n.id, n.parent_id, n.depth, n.path_tokens, n.prefix_id, n.id as anchor_id
    from nodes n
    where n.conversation_id = @conversation_id and n.id = @anchor_id and n.kind = 'message'
    union all
    select p.id, p.parent_id, p.depth, p.path_tokens, p.prefix_id, path.anchor_id
    from path
    join nodes p on p.conversation_id = @conversation_id and p.id = path.parent_id
    where path.id <> @cutoff_id::uuid
), inserted as (
    insert into nodes (conversation_id, id, parent_id, kind, role, depth, tokens, path_tokens, prefix_id, pinned, created_at,
                       body, metadata, last_summarized_id, prior_summary_id, kept_ids, model)
    select @conversation_id, @id, anchor.id, 'summary', 'user', anchor.depth + 1, @tokens::integer, anchor.path_tokens + @tokens::integer, anchor.prefix_id,
           false, @created_at, @body, sqlc.narg(metadata), cutoff.id, sqlc.narg(prior_summary_id), @kept_ids::uuid[], @model::text
    from path anchor
    join path cutoff on cutoff.id = @cutoff_id::uuid
    where anchor.id = @anchor_id::uuid
    returning *
)
select sqlc.embed(nodes) from inserted nodes;
