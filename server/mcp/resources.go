package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/google/uuid"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-chat/coppice/fault"
)

const scheme = "coppice://conversations/"

func branchURI(conversationID, headID uuid.UUID) string {
	return scheme + conversationID.String() + "/branches/" + headID.String()
}

func addResources(s *sdk.Server) {
	s.AddResourceTemplate(&sdk.ResourceTemplate{
		Name: "conversation", Title: "A conversation", MIMEType: "application/json", URITemplate: scheme + "{conversation_id}",
		Description: "A conversation's title, and its branches, newest first.",
	}, read)
	s.AddResourceTemplate(&sdk.ResourceTemplate{
		Name: "branch", Title: "A branch", MIMEType: "application/json", URITemplate: scheme + "{conversation_id}/branches/{head_id}",
		Description: "The newest messages of a branch, oldest first. active as the head stands for the branch that was used last.",
	}, read)
}

// A ConversationResource is the content of a conversation's resource.
type ConversationResource struct {
	Conversation
	Branches
}

// read reads a resource of either template.
func read(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	uri := req.Params.URI
	value, err := do(ctx, false, func(ctx context.Context, c *call) (any, error) {
		conversationID, head, branch := strings.Cut(strings.TrimPrefix(uri, scheme), "/branches/")
		if branch {
			return readBranch(ctx, c, ReadBranchArguments{Branch: Branch{conversationID, head}, BudgetTokens: maxBudget})
		}
		id, err := parseID(conversationID, "uri")
		if err != nil {
			return nil, err
		}
		conversation, err := c.Store.Conversation(ctx, id)
		if err != nil {
			return nil, err
		}
		branches, err := listBranches(ctx, c, ListBranchesArguments{ConversationID: conversationID, Listing: Listing{Limit: 100}})
		return ConversationResource{conversationOf(conversation), branches}, err
	})
	var wrong refused
	if errors.As(err, &wrong) && (wrong.Status == 404 || wrong.Code == "invalid_id") {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fault.New(fault.Internal, "", "", "")
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: "application/json", Text: string(text)}}}, nil
}
