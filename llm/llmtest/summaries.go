package llmtest

import "strings"

// NoSummaries are answers to a request for a summary that are no summary of any
// conversation, by what they are.
var NoSummaries = map[string]string{
	"a long refusal": "I'm sorry, but I can't help with summarizing this conversation. As a responsible assistant I have to be careful with personal information, and the material that you have shared seems to contain details about people who may not have agreed to have their words condensed or passed on. I would suggest that you ask the people involved first, or that you write the text yourself. If there is anything else that I can help you with, such as general advice on good writing, please let me know, and I will be happy to help.",
	"a question":     "Could you please share the conversation that you would like me to summarize?",
	"headings":       "## Task\n\n## Facts\n\n**Decisions**\n\nNext step:",
	"nothing more":   strings.Repeat("There is nothing more to say.\n", 3),
	"one line":       strings.Repeat("The oven is moved on 25 August with the van of Ilse Steenbock.\n", 60),
	"JSON":           `{"summary": "The user asked for something, and the assistant did it.", "topics": ["work", "plans"]}`,
	"a tool call":    "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"conversation\"}}\n</tool_call>",
	"a reply":        "Crumbs-Guest sounds lovely! It is short, friendly, and easy to remember for people who sit down with a coffee. Shall I think of a password as well, or do you already have one in mind?",
	"another matter": "Darryl looks for sneakers at Foot Locker: Adidas Ultraboost for $180, Nike React Infinity Run for $160, Brooks Ghost 14. His girlfriend Lauren likes the VaporMax. He walks 5 miles a day in Montserrat.",
}

// AwkwardSummaries returns answers that have a summary in a form which models give it,
// by that form.
func AwkwardSummaries(summary string) map[string]string {
	return map[string]string{
		"a code fence":                  "```markdown\n" + summary + "\n```",
		"its own tags":                  "<coppice-summary>\n" + summary + "\n</coppice-summary>",
		"the marker at the end":         summary + "\n\n<coppice-cutoff-0123456789abcdef/>",
		"reasoning":                     "<think>I'll keep the names.</think>\n\n" + summary,
		"reasoning without a beginning": "I'll keep the names.\n</think>\n\n" + summary,
		"reasoning in brackets":         "[THINK]I'll keep the names.[/THINK]" + summary,
		"channels":                      "<|channel|>analysis<|message|>I'll keep the names.<|end|><|start|>assistant<|channel|>final<|message|>" + summary,
		"analysis and summary":          "<analysis>\nThe names matter.\n</analysis>\n<summary>\n" + summary + "\n</summary>",
		"a preamble":                    "Here is the summary of the conversation:\n\n" + summary,
	}
}
