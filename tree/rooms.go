package tree

// A Store has what every program uses: conversations, messages and branches. What
// fewer packages use stands in a room of its own. A room is the same store: the same
// handle, tenant and limits.
type (
	// Summaries are the summaries of branches, and the compactions that made them.
	Summaries Store

	// Attachments are the files that messages name.
	Attachments Store

	// Histories are what clients send that keep no ids: it is recognized, and what is
	// new in it is stored.
	Histories Store

	// Shares are links by which anybody reads one branch.
	Shares Store

	// Admin is what operators do: with tenants, the audit, and the installation.
	Admin Store

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

// Summaries returns the store's summaries.
func (s *Store) Summaries() *Summaries { return (*Summaries)(s) }

// Attachments returns the store's attachments.
func (s *Store) Attachments() *Attachments { return (*Attachments)(s) }

// Histories returns the store as it serves clients without ids.
func (s *Store) Histories() *Histories { return (*Histories)(s) }

// Shares returns the store's links.
func (s *Store) Shares() *Shares { return (*Shares)(s) }

// Admin returns the store as operators see it.
func (s *Store) Admin() *Admin { return (*Admin)(s) }

// Index returns the store's index.
func (s *Store) Index() *Index { return (*Index)(s) }

// Replies returns the store's replies.
func (s *Store) Replies() *Replies { return (*Replies)(s) }

// Feed returns the store's feed of changes.
func (s *Store) Feed() *Feed { return (*Feed)(s) }

func (s *Summaries) store() *Store   { return (*Store)(s) }
func (s *Attachments) store() *Store { return (*Store)(s) }
func (s *Histories) store() *Store   { return (*Store)(s) }
func (s *Shares) store() *Store      { return (*Store)(s) }
func (s *Admin) store() *Store       { return (*Store)(s) }
func (s *Index) store() *Store       { return (*Store)(s) }
func (s *Replies) store() *Store     { return (*Store)(s) }
func (s *Feed) store() *Store        { return (*Store)(s) }
