package tree

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// A History is what a client sends that keeps no ids: all of its messages, or the
// last ones, each time.
type History struct {
	Messages []*chat.Message   // oldest first
	Metadata []json.RawMessage // of each message, where it is stored; nil for none
	// Session says that the conversation is that of a session which the client
	// names, and of nothing else. Then Recognize also finds a history whose
	// beginning changed or is missing. Without one, only the instructions that it
	// begins with may have changed.
	Session bool
}

// A Path is where a history stands in a conversation.
type Path struct {
	HeadID uuid.UUID    // the last message that is known; uuid.Nil for none
	Known  int          // of the history: the last of so many is the head, and none of them needs to be stored
	Prompt int          // of those, the first so many aren't on the path: the client's prompt, which changed, or what its window begins with. 0 where the first one is
	Tokens int64        // of the known messages of the history
	Rest   []NewMessage // the others, to be stored below the head; their ids derive from the path

	hash       chat.PathHash // of the head
	pathTokens int64         // of the head
}

// Recognize finds where a history goes on in a conversation, by what its messages
// mean (chat.PathHash): below the longest beginning of it that is stored. It finds
// only paths whose root has a path hash, together with everything that was appended
// below their messages. Of several that say the same, it takes the newest.
//
// In a session, the history may go on further down: below the last of its answers
// that is known on the same branch, or on another branch that says more of it than
// the beginning. What stands before that answer in the history and isn't known is
// the client's prompt, and not to be stored. Of a history that an agent compacted, which
// has questions and no answers, it goes on behind the answer to the last question that the
// active branch has. Without a session, only instructions, in which agents write the time,
// may differ, and the history may leave out the calls and results of which an answer came.
// It is one query where the beginning is known up to the last answer and one question more.
// An absent conversation is a fault.NotFound, and all of the history is the Rest.
func (s *Histories) Recognize(ctx context.Context, conversationID uuid.UUID, h History) (p Path, err error) {
	defer db.Wrap(&err, "tree.Histories.Recognize(%s, %d messages)", conversationID, len(h.Messages))
	forms := make([][sha256.Size]byte, len(h.Messages))
	lastAnswer := -1
	for i, m := range h.Messages {
		if forms[i] = m.Form(); m.Role == chat.Assistant {
			lastAnswer = i
		}
	}
	if p, err = s.followPath(ctx, conversationID, forms, Path{}); err != nil {
		if errors.Is(err, fault.NotFound) {
			var failed error
			if p.Rest, failed = s.onPath(ctx, conversationID, h, p); failed != nil {
				err = failed
			}
		}
		return p, err
	}
	answered := lastAnswer >= p.Known
	if h.Session && (answered || len(h.Messages) > p.Known+1) || answered && (h.Messages[p.Known].Role == chat.Assistant || instructs(h.Messages[p.Known].Role)) {
		run, err := s.findRun(ctx, conversationID, h, forms, p)
		if err == nil && run.Known > 0 {
			p, err = s.followPath(ctx, conversationID, forms, run)
		}
		if err != nil {
			return p, err
		}
	}
	p.Rest, err = s.onPath(ctx, conversationID, h, p)
	return p, err
}

// followPath follows a path as far as the messages below it have the forms of a
// history.
func (s *Histories) followPath(ctx context.Context, conversationID uuid.UUID, forms [][sha256.Size]byte, from Path) (Path, error) {
	params := db.FindPathParams{ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader}
	above := from.hash
	for _, form := range forms[from.Known:] {
		above = above.ChildOf(form)
		params.Hashes = append(params.Hashes, slices.Clone(above[:]))
	}
	row, err := s.q.FindPath(ctx, params)
	if err == nil && !row.Current {
		if err = s.store().rehash(ctx, conversationID); err == nil {
			row, err = s.q.FindPath(ctx, params)
		}
	}
	if err != nil || row.Position == 0 {
		return from, orMissing(err, errConversationNotFound)
	}
	from.Known += int(row.Position)
	from.HeadID, from.hash = uuid.UUID(row.ID.Bytes), chat.PathHash(params.Hashes[row.Position-1])
	from.Tokens, from.pathTokens = from.Tokens+row.PathTokens-from.pathTokens, row.PathTokens
	return from, nil
}

// Bounds of the look for a run.
const (
	maxRunBranches = 16   // besides the active one, the newest
	maxRunMessages = 2000 // of a branch, from its head
	maxRunAnswers  = 16   // of the history, the last ones
)

// instructs tells whether messages of a role are a client's instructions.
func instructs(role chat.Role) bool { return role == chat.System || role == chat.Developer }

// findRun finds the last answer of a history that stands on the active branch, or
// else on one of the newest ones, behind the beginning that is known. Where no answer of a
// session does, it finds the last question on the active branch. Known is 0 where there is
// none.
func (s *Histories) findRun(ctx context.Context, conversationID uuid.UUID, h History, forms [][sha256.Size]byte, begins Path) (Path, error) {
	l := runSearch{begins: begins, h: h, forms: forms}
	for i, m := range slices.Backward(h.Messages) {
		if i >= begins.Known && m.Role == chat.Assistant && len(l.answers) < maxRunAnswers {
			l.answers = append(l.answers, i)
		}
	}
	for _, m := range h.Messages[:begins.Known] {
		if !instructs(m.Role) {
			l.said++
		}
	}
	c, err := s.store().Conversation(ctx, conversationID)
	if err != nil || c.HeadID == uuid.Nil {
		return Path{}, err
	}
	best, err := s.store().runOn(ctx, conversationID, c.HeadID, l)
	if err != nil || len(l.answers) == 0 || best.Known == l.answers[0]+1 {
		return best, err
	}
	leaves, err := s.store().Branches(ctx, conversationID, Paging{Limit: maxRunBranches})
	if err != nil {
		return Path{}, err
	}
	for _, leaf := range leaves.Data {
		if leaf.ID == c.HeadID {
			continue
		}
		run, err := s.store().runOn(ctx, conversationID, leaf.ID, l)
		if err != nil {
			return Path{}, err
		}
		if run.Known > best.Known || run.Known == best.Known && run.Prompt < best.Prompt {
			best = run
		}
	}
	if best.Known == 0 && h.Session {
		l.answers = nil
		return s.store().runOn(ctx, conversationID, c.HeadID, l)
	}
	return best, nil
}

// A runSearch is what is looked for on the branches of a conversation.
type runSearch struct {
	h       History
	forms   [][sha256.Size]byte
	answers []int // of the history, that are looked for, the last first
	begins  Path  // the beginning that is known
	said    int   // messages of it, without instructions
}

// runOn finds the last of the answers on a branch: below the beginning where that is
// on the branch, and else with more messages before it than the beginning has. Of
// several places of an answer, the one counts before which most messages of the
// history stand, and then the newest.
func (s *Store) runOn(ctx context.Context, conversationID, headID uuid.UUID, l runSearch) (Path, error) {
	for _, limit := range []int{min(2*len(l.forms)+32, maxRunMessages), maxRunMessages} {
		rows, err := s.q.ListPathHashes(ctx, db.ListPathHashesParams{ConversationID: toUUID(conversationID), HeadID: toUUID(headID), TenantID: s.tenant, Reader: s.reader, RowLimit: int32(limit)})
		if err != nil {
			return Path{}, err
		}
		whole := len(rows) < limit
		rows = slices.DeleteFunc(rows, func(row db.ListPathHashesRow) bool { return row.PathHash == nil })
		candidates, least, begin := len(rows), l.said+1, 0
		if i := slices.IndexFunc(rows, func(row db.ListPathHashesRow) bool { return row.ID == toUUID(l.begins.HeadID) }); i >= 0 {
			candidates, least, begin = i, 1, l.begins.Known
		}
		says := func(row, message int) bool { // a path hash is made of the one above and of the form
			var above chat.PathHash
			switch {
			case row >= candidates || message < begin: // which the branch may say once more, below
				return false
			case row+1 < len(rows):
				above = chat.PathHash(rows[row+1].PathHash)
			case rows[row].ParentID.Valid:
				return false
			}
			return above.ChildOf(l.forms[message]) == chat.PathHash(rows[row].PathHash)
		}
		if len(l.answers) == 0 {
			if whole || limit == maxRunMessages {
				return s.behind(ctx, rows, candidates, begin, least, l, says)
			}
			continue
		}
		if !l.h.Session {
			if begin > 0 || whole {
				return s.along(ctx, rows, candidates, begin, least, l, says)
			}
			continue
		}
		ends := map[int]int{}
		for _, last := range l.answers {
			at, length := longestRun(candidates, last, ends, says)
			if length < least {
				continue
			}
			first := last + 1 - length
			p := Path{HeadID: uuid.UUID(rows[at].ID.Bytes), Known: last + 1, Prompt: first, hash: chat.PathHash(rows[at].PathHash), pathTokens: rows[at].PathTokens}
			p.Tokens = pathTokens(rows, at, at+length)
			if begin > 0 {
				p.Prompt = 0
				p.Tokens += l.begins.Tokens
			}
			for _, m := range l.h.Messages[begin:first] {
				cost, err := s.cost(ctx, m, nil)
				if err != nil {
					return Path{}, err
				}
				p.Tokens += int64(cost)
			}
			return p, nil
		}
		if whole {
			break
		}
	}
	return Path{}, nil
}

// along follows a branch as far as a history of no session says the same, and returns the
// last answer that both have. Instructions may differ, and calls with their results may be
// on the branch alone.
func (s *Store) along(ctx context.Context, rows []db.ListPathHashesRow, candidates, begin, least int, l runSearch, says func(row, message int) bool) (p Path, err error) {
	tokens, at, same, first := l.begins.Tokens, begin, 0, 0
	if begin == 0 {
		tokens = 0
	}
	for row := candidates - 1; row >= 0 && at < len(l.forms); {
		role := chat.Role(rows[row].Role)
		switch {
		case says(row, at):
			tokens += pathTokens(rows, row, row+1)
			if same++; same == 1 && begin == 0 {
				first = at
			}
			at++
			if role == chat.Assistant && same >= least {
				p = Path{HeadID: uuid.UUID(rows[row].ID.Bytes), Known: at, Prompt: first, Tokens: tokens, hash: chat.PathHash(rows[row].PathHash), pathTokens: rows[row].PathTokens}
			}
			row--
		case instructs(l.h.Messages[at].Role):
			cost, err := s.cost(ctx, l.h.Messages[at], nil)
			if err != nil {
				return Path{}, err
			}
			tokens += int64(cost)
			at++
		case instructs(role) || role == chat.Tool || role == chat.Assistant && row > 0 && chat.Role(rows[row-1].Role) == chat.Tool:
			row--
		default:
			return p, nil
		}
	}
	return p, nil
}

// behind follows the messages of a compacted history along a branch, in the same order. It
// returns the last that the branch has too, or the end of its turn where the history goes
// on with a question. Messages between them may be on the branch alone. Others may be in the
// history alone: the client's prompt, which agents send once more before the last question
// that they keep. So a last message counts only right behind one that is known.
func (s *Store) behind(ctx context.Context, rows []db.ListPathHashesRow, candidates, begin, least int, l runSearch, says func(row, message int) bool) (p Path, err error) {
	if begin > 0 {
		p.Known, p.Tokens = begin, l.begins.Tokens
	}
	end, same, unknown := candidates, 0, 0
	for i := begin; i < len(l.forms) && unknown < maxRunAnswers; i++ {
		row := end - 1
		for row >= 0 && !says(row, i) {
			row--
		}
		if row < 0 || i == len(l.forms)-1 && p.Known < i && (same > 0 || l.said > 0) {
			unknown++
			continue
		}
		if same++; same == 1 && begin == 0 {
			p.Prompt = i
		}
		for _, m := range l.h.Messages[p.Known:i] {
			cost, err := s.cost(ctx, m, nil)
			if err != nil {
				return Path{}, err
			}
			p.Tokens += int64(cost)
		}
		p.Tokens += pathTokens(rows, row, row+1)
		end, p.Known = row, i+1
	}
	few := same < least && (begin == 0 || l.said == 0)
	if few || same == 1 && begin == 0 { // with other instructions, one question may be of another agent of the session
		return Path{}, nil
	}
	if p.Known < len(l.forms) && l.h.Messages[p.Known].Role != chat.Assistant {
		for end > 0 && (chat.Role(rows[end-1].Role) == chat.Assistant || chat.Role(rows[end-1].Role) == chat.Tool) {
			end--
		}
	}
	p.HeadID, p.hash, p.pathTokens = uuid.UUID(rows[end].ID.Bytes), chat.PathHash(rows[end].PathHash), rows[end].PathTokens
	return p, nil
}

// pathTokens are the tokens of the rows of a branch from one up to another, which is above.
func pathTokens(rows []db.ListPathHashesRow, from, above int) int64 {
	if above < len(rows) {
		return rows[from].PathTokens - rows[above].PathTokens
	}
	return rows[from].PathTokens
}

// longestRun returns the row of a branch at which the longest run ends that has a message
// of a history as its last, and how many messages it has. ends are those of the runs that
// other calls found, by row and message together: no pair is compared twice.
func longestRun(rows, last int, ends map[int]int, says func(row, message int) bool) (at, length int) {
	for row := range rows {
		end, known := ends[row+last]
		if !known || end < row {
			for end = row; says(end, row+last-end); {
				end++
			}
			ends[row+last] = end
		}
		if end-row > length {
			at, length = row, end-row
		}
	}
	return at, length
}

// pathForm is the canonical form of messages that path hashes are made of. It grows
// when chat.Message.AppendCanonical changes.
const pathForm = 2

// rehash makes the path hashes of a conversation anew, which are those of an older
// canonical form. The conversation's other writers wait.
func (s *Store) rehash(ctx context.Context, conversationID uuid.UUID) error {
	const atOnce = 20 // bodies in memory
	return s.inTurn(ctx, conversationID, func(s *Store) error {
		c, err := s.lock(ctx, conversationID)
		if err != nil || c.PathForm.Int16 == pathForm {
			return err
		}
		rows, err := s.q.ListParentStates(ctx, c.ID)
		if err != nil {
			return err
		}
		slices.SortFunc(rows, func(a, b db.ListParentStatesRow) int { return cmp.Compare(a.Depth, b.Depth) })
		hashes := make(map[pgtype.UUID]chat.PathHash, len(rows)) // of a message without one, that above it, as Behind has it
		for some := range slices.Chunk(rows, atOnce) {
			var ids []pgtype.UUID
			for _, row := range some {
				if row.PathHash != nil {
					ids = append(ids, row.ID)
				}
			}
			nodes, err := s.q.ListNodes(ctx, db.ListNodesParams{ConversationID: c.ID, Ids: ids})
			if err != nil {
				return err
			}
			bodies := map[pgtype.UUID]json.RawMessage{}
			for _, n := range nodes {
				bodies[n.ID] = n.Body
			}
			made := db.SetPathHashesParams{ConversationID: c.ID}
			for _, row := range some {
				hash := hashes[row.ParentID]
				if body, there := bodies[row.ID]; there {
					hash = hash.Child(chat.Read(body))
					made.Ids, made.Hashes = append(made.Ids, row.ID), append(made.Hashes, slices.Clone(hash[:]))
				}
				hashes[row.ID] = hash
			}
			if err := s.q.SetPathHashes(ctx, made); err != nil {
				return err
			}
		}
		return s.q.SetPathForm(ctx, c.ID)
	})
}
