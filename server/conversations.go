package server

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/tree"
)

// newConversation is the schema of this name.
type newConversation struct {
	id, title           *string
	ownerID, visibility *string
	metadata, settings  jsonObject
}

func (b *newConversation) fields() []field {
	return []field{{"owner_id", false, &b.ownerID}, {"visibility", false, &b.visibility}, {"id", false, &b.id}, {"metadata", false, &b.metadata}, {"settings", false, &b.settings}, {"title", false, &b.title}}
}

func (b *newConversation) read(o reader.Object) error { return bind(o, b.fields()) }

// newConversation reads what the request says of the conversation it makes.
// Scope is the route with the ids in it, from which an id derives.
func (r *Request) newConversation(scope string) (n tree.NewConversation, derived bool, err error) {
	b := r.body.(*newConversation)
	n = tree.NewConversation{Title: deref(b.title), Metadata: json.RawMessage(b.metadata), Settings: json.RawMessage(b.settings)}
	if n.OwnerID, n.Shared, err = r.readers(b.ownerID, b.visibility); err != nil {
		return n, false, err
	}
	n.ID, derived, err = r.newID(b.id, scope)
	return n, derived, err
}

// readers reads whose a conversation becomes, and whether the whole tenant reads it.
// Only the tenant itself makes conversations of others than itself.
func (r *Request) readers(ownerID, word *string) (owner string, shared bool, err error) {
	owner = deref(ownerID)
	if ownerID != nil && owner != r.who.User && r.who.User != "" {
		return "", false, notPermitted("You make conversations of your own only: leave owner_id out.")
	}
	private, err := isPrivate(word)
	if err == nil && private != nil && *private && owner == "" && r.who.User == "" {
		err = problemf(CodeInvalidParameter, "visibility", "Without an owner, nobody could read it. Name one as owner_id.")
	}
	return owner, private != nil && !*private, err
}

// isPrivate reads a visibility; nil is none.
func isPrivate(word *string) (*bool, error) {
	switch {
	case word == nil:
		return nil, nil
	case *word == "private", *word == "tenant":
		private := *word == "private"
		return &private, nil
	}
	return nil, problemf(CodeInvalidParameter, "visibility", "It is private, or tenant for all of the tenant.")
}

func createConversation(r *Request) (Answer, error) {
	n, derived, err := r.newConversation("conversations")
	if err != nil {
		return nil, err
	}
	c, created, err := r.Store().CreateConversation(r.Context(), n)
	if err != nil {
		return nil, ConflictOfKey(err, derived)
	}
	r.About(c.ID)
	return answerCreated(c, created, conversationPath(c.ID))
}

func listConversations(r *Request) (Answer, error) {
	if name := r.Query("name"); name != nil {
		return r.conversationsNamed(*name)
	}
	p, err := r.paging()
	if err != nil {
		return nil, err
	}
	archived, err := r.flag("archived", false)
	if err != nil {
		return nil, err
	}
	shapes, err := r.flag("shapes", false)
	if err != nil {
		return nil, err
	}
	if tag := r.Query("tag"); tag != nil && *tag == "" {
		return nil, problemf(CodeInvalidTag, "tag", "The tag is empty. Name one, or leave the parameter out.")
	}
	filter := tree.ConversationFilter{Query: deref(r.Query("query")), Tag: deref(r.Query("tag")), Archived: archived, Shapes: shapes}
	list, incomplete, err := r.Searches().Conversations(r.Context(), r.Store(), filter, p)
	if err != nil {
		return nil, err
	}
	return answerFound(list, incomplete)
}

// conversationsNamed gives the conversations that a person may mean by a name.
func (r *Request) conversationsNamed(name string) (Answer, error) {
	if name == "" || len(r.query) > 1 {
		return nil, problemf(CodeInvalidParameter, "name", "Give an id, a title or a part of one, and no other parameter.")
	}
	found, err := r.Store().FindConversation(r.Context(), name)
	if err != nil {
		return nil, err
	}
	return answerPage(tree.Page[tree.Conversation]{Data: found})
}

func getConversation(r *Request) (Answer, error) {
	id, err := r.ID("conversation_id")
	if err != nil {
		return nil, err
	}
	c, err := r.Store().Conversation(r.Context(), id)
	if err != nil {
		return nil, err
	}
	return answerTagged(c)
}

// answerTagged gives a conversation with an entity tag, which a change of it may name.
func answerTagged(c tree.Conversation) (Answer, error) {
	a, err := answerWith(c)
	a.tag = tagOf(c)
	return a, err
}

// tagOf is the entity tag of a conversation as its answer shows it.
func tagOf(c tree.Conversation) string {
	sum := sha256.Sum256(c.AppendJSON(nil))
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// ifMatch reads the entity tags that a request names: what it changes must have one
// of them. It is nil where the request names none.
func (r *Request) ifMatch() (func(tree.Conversation) error, error) {
	given, err := r.parameter()
	if given == nil || err != nil || strings.TrimSpace(*given) == "*" {
		return nil, err
	}
	return func(c tree.Conversation) error {
		for tag := range strings.SplitSeq(*given, ",") {
			if strings.TrimSpace(tag) == tagOf(c) {
				return nil
			}
		}
		return problemf(CodePreconditionFailed, ifMatch, "The conversation has changed since. Read it, and send the change again with its new ETag.")
	}, nil
}

// conversationUpdate is the schema of this name.
type conversationUpdate struct {
	headID, title       *string
	ownerID, visibility *string
	metadata, settings  jsonObject
	archived, pinned    *bool
	tags                []string
}

func (b *conversationUpdate) fields() []field {
	return []field{
		{"archived", false, &b.archived}, {"head_id", false, &b.headID}, {"metadata", false, &b.metadata}, {"pinned", false, &b.pinned},
		{"settings", false, &b.settings}, {"tags", false, &b.tags}, {"title", false, &b.title}, {"owner_id", false, &b.ownerID}, {"visibility", false, &b.visibility},
	}
}

func (b *conversationUpdate) read(o reader.Object) error { return bind(o, b.fields()) }

func updateConversation(r *Request) (Answer, error) {
	b := r.body.(*conversationUpdate)
	id, err := r.ID("conversation_id")
	if err != nil {
		return nil, err
	}
	head, err := parseOptionalID(b.headID, "head_id")
	if err != nil {
		return nil, err
	}
	match, err := r.ifMatch()
	if err != nil {
		return nil, err
	}
	private, err := isPrivate(b.visibility)
	if err != nil {
		return nil, err
	}
	c, err := r.Store().UpdateConversation(r.Context(), id, tree.ConversationUpdate{
		Merge: isMergePatch(r.Header.Get("Content-Type")), If: match,
		OwnerID: b.ownerID, Private: private,
		Title: b.title, Metadata: json.RawMessage(b.metadata), Settings: json.RawMessage(b.settings), HeadID: head,
		Archived: b.archived, Pinned: b.pinned, Tags: b.tags,
	})
	if err != nil {
		return nil, err
	}
	return answerTagged(c)
}

func deleteConversation(r *Request) (Answer, error) {
	id, err := r.ID("conversation_id")
	if err != nil {
		return nil, err
	}
	return noContent{}, r.Store().DeleteConversation(r.Context(), id)
}

func listTags(r *Request) (Answer, error) {
	archived, err := r.flag("archived", false)
	if err != nil {
		return nil, err
	}
	tags, err := r.Store().Tags(r.Context(), archived)
	if err != nil {
		return nil, err
	}
	return answerStruct(tree.Page[tree.TagCount]{Data: tags})
}
