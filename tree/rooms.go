package tree

// A Store has what every program uses: conversations, messages, branches, summaries.
// What one package alone uses stands in a room of its own. A room is the same store:
// the same handle, tenant and limits.
type (
	// An Index has what package search keeps and reads: chunks of words, vectors, and
	// texts of messages.
	Index Store

	// Replies are the replies that run or ended lately, which package reply keeps.
	Replies Store

	// A Feed is the changes as package watch hands them out, and the places of the
	// followers that read them. Feed is for no request, except for changes of the
	// store's tenant.
	Feed Store
)

// Index returns the store's index.
func (s *Store) Index() *Index { return (*Index)(s) }

// Replies returns the store's replies.
func (s *Store) Replies() *Replies { return (*Replies)(s) }

// Feed returns the store's feed of changes.
func (s *Store) Feed() *Feed { return (*Feed)(s) }

func (i *Index) store() *Store   { return (*Store)(i) }
func (r *Replies) store() *Store { return (*Store)(r) }
func (f *Feed) store() *Store    { return (*Store)(f) }
