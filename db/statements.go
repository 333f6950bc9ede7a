package db

// Statements are the texts of what is asked most often, for who measures what
// they cost without the program around them. Programs call [Queries].
var Statements = struct {
	LockConversation string // $1 id, $2 tenant_id
	AppendMessage    string // in the order of AppendInTurn
	GetView          string // in the order of GetView
	GetTranscript    string // in the order of GetTranscript
	StreamTree       string // $1 preview, $2 conversation_id
}{lockConversation, appendMessage, getView, getTranscript, streamTree}
