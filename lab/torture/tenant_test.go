package torture

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestCompareIntrusion(t *testing.T) {
	t.Parallel()
	theirs := names{"CONVERSATION": uuid.NewString(), "MESSAGE": uuid.NewString()}
	nobodys := names{"CONVERSATION": uuid.NewString(), "MESSAGE": uuid.NewString()}
	absent := func(n names) answer {
		return answer{status: 404, body: []byte(n.in("there is no MESSAGE in CONVERSATION"))}
	}
	for _, test := range []struct {
		name  string
		a     answer
		right bool
	}{
		{"the same, ids aside", absent(theirs), true},
		{"what it has", answer{status: 200, body: []byte(theirs.in("MESSAGE"))}, false},
		{"another status", answer{status: 403, body: absent(theirs).body}, false},
		{"other words", answer{status: 404, body: []byte(theirs.in("MESSAGE of CONVERSATION isn't yours"))}, false},
	} {
		if wrong := compareIntrusion(test.a, theirs, absent(nobodys), nobodys); (wrong == "") != test.right {
			t.Errorf("%s: %q", test.name, wrong)
		}
	}
}

// Every route that takes an id of a conversation is tried with another tenant's.
func TestEveryRouteIsPried(t *testing.T) {
	t.Parallel()
	spec, err := os.ReadFile("../../server/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{}
	for _, i := range intrusions {
		path, _, _ := strings.Cut(i.path, "?")
		for _, head := range []string{"/branches/MESSAGE", "/branches/active"} {
			path = strings.Replace(path, head, "/branches/{}", 1)
		}
		for _, word := range []string{"CONVERSATION", "OWN", "MESSAGE", "SUMMARY"} {
			path = strings.ReplaceAll(path, word, "{}")
		}
		tried[i.method+" "+path] = true
	}
	parameter := regexp.MustCompile(`\{\w+\}`)
	path, routes := "", 0
	for lines := bufio.NewScanner(bytes.NewReader(spec)); lines.Scan(); {
		text := lines.Text()
		if strings.HasPrefix(text, "  /") {
			path = strings.TrimSuffix(strings.TrimSpace(text), ":")
		}
		method := strings.ToUpper(strings.TrimSuffix(strings.TrimPrefix(text, "    "), ":"))
		switch method {
		case http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete:
		default:
			continue
		}
		if !strings.Contains(path, "{conversation_id}") && path != "/v1/search" {
			continue
		}
		routes++
		if route := method + " " + parameter.ReplaceAllString(path, "{}"); !tried[route] {
			t.Errorf("no intrusion tries %s", route)
		}
	}
	if routes < 20 {
		t.Errorf("the specification has %d routes with ids", routes)
	}
}

func TestRefusedKey(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		a     answer
		right bool
		said  bool
	}{
		{"refused", answer{status: 401, code: "invalid_key"}, true, true},
		{"let in", answer{status: 200}, false, true},
		{"refused for something else", answer{status: 404, code: "conversation_not_found"}, false, true},
		{"no answer", answer{err: errors.New("reset")}, true, false},
		{"no database", answer{status: 503, code: "database_unavailable"}, true, false},
		{"one too many", answer{status: 429, code: "rate_limited"}, true, false},
	} {
		if wrong, said := refusedKey(test.a); (wrong == "") != test.right || said != test.said {
			t.Errorf("%s: %q, %v", test.name, wrong, said)
		}
	}
}

// A request that is refused because its key was replaced meanwhile is sent
// again with the new one; of any other key that isn't taken, the run complains.
func TestReplacedKey(t *testing.T) {
	t.Parallel()
	report := newRecorder(quietLog())
	owner := &tenant{key: apiKey{Secret: "old"}, retired: map[string]bool{}}
	c := newClient(nil, report).as(owner)
	refusal := func(secret string) answer {
		a := answer{status: 401, body: []byte(`{"code": "invalid_key"}`)}
		c.note(t.Context(), &a, secret, http.MethodGet, "/v1/search", false)
		return a
	}
	if a := refusal("old"); a.again() || len(report.finish().Violations) != 1 {
		t.Errorf("a good key that is refused: again %v, violations %v", a.again(), report.finish().Violations)
	}
	owner.replace(apiKey{Secret: "new"})
	if a := refusal("old"); !a.again() || a.outcome() != unknown || len(report.finish().Violations) != 1 {
		t.Errorf("a replaced key that is refused: again %v, violations %v", a.again(), report.finish().Violations)
	}
}

func TestCheckHits(t *testing.T) {
	t.Parallel()
	s := newScene()
	other := newScene()
	ours, theirs := &tenant{name: "ours"}, &tenant{name: "theirs"}
	s.c.tenant, other.c.tenant = ours, theirs
	r := &run{all: []*conversation{s.c, other.c}}
	m := s.message("u2")
	time.Sleep(time.Millisecond)
	for _, test := range []struct {
		name   string
		within bool
		hits   func() []hit
		want   string
	}{
		{"the message", true, func() []hit { return []hit{{Message: s.shown("u2")}} }, ""},
		{"nothing", true, func() []hit { return nil }, "search"},
		{"another message", true, func() []hit { return []hit{{Message: s.shown("u2")}, {Message: s.shown("a2")}} }, "search"},
		{"a message of another tenant", false, func() []hit { return []hit{{Message: s.shown("u2")}, {Message: other.shown("u2")}} }, "tenant"},
		{"a message of a conversation that nobody made", false, func() []hit {
			g := s.shown("u2")
			g.ConversationID = uuid.New()
			return []hit{{Message: s.shown("u2")}, {Message: g}}
		}, "search"},
		{"a message that nobody sent", true, func() []hit {
			g := s.shown("u2")
			g.ID = uuid.New()
			return []hit{{Message: s.shown("u2")}, {Message: g}}
		}, "search"},
		{"with another text", true, func() []hit {
			g, text := s.shown("u2"), s.text["u2"]+" and more"
			g.Content = &text
			return []hit{{Message: g}}
		}, "changed"},
	} {
		if found := r.checkHits(s.c, m, test.hits(), test.within, time.Now()); kinds(found) != test.want {
			t.Errorf("%s: found %v, want %q", test.name, found, test.want)
		}
	}
	s.prune("u2", acknowledged)
	time.Sleep(time.Millisecond)
	if found := kinds(r.checkHits(s.c, m, []hit{{Message: s.shown("u2")}}, true, time.Now())); found != "came back" {
		t.Errorf("of a pruned message found %q", found)
	}
	if found := kinds(r.checkHits(s.c, m, nil, true, time.Now())); found != "" {
		t.Errorf("of a pruned message that isn't found, found %q", found)
	}
}
