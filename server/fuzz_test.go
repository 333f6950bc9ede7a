package server

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// answerTo has the server answer a request that was made without a client
// library, and so may be odder. It fails on a 5xx and on what is no problem.
func (a *testAPI) answerTo(t *testing.T, req *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	res := httptest.NewRecorder()
	a.server.ServeHTTP(res, req)
	if res.Code >= 500 && !strings.Contains(res.Body.String(), "model_bad_response") {
		t.Fatalf("%s %q: %d: %s\n%s", req.Method, req.URL, res.Code, res.Body, a.log)
	}
	if res.Code >= 400 {
		var p Problem
		if err := json.Unmarshal(res.Body.Bytes(), &p); err != nil || !p.Code.Valid() || p.Detail == "" || p.Status != res.Code || len(p.Detail) > 1000 {
			t.Fatalf("%s %q: %d: %v: %s", req.Method, req.URL, res.Code, err, res.Body)
		}
	}
	return res
}

// FuzzCursor gives any cursor to every list, and the list's own one with
// another place in it. One that is taken gives a page.
func FuzzCursor(f *testing.F) {
	a := newAPI(f)
	lists := cursorLists(f, a)
	for i, list := range lists {
		for j := range lists {
			f.Add(j, list.cursor, int64(0))
		}
		for _, at := range []time.Time{
			time.Date(-4713, 11, 24, 0, 0, 0, 0, time.UTC), time.Date(-4712, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-5000, 1, 1, 0, 0, 0, 0, time.UTC), {}, time.Unix(0, 0),
			time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), time.Date(294276, 12, 31, 23, 59, 59, 999999000, time.UTC), time.Date(294277, 1, 1, 0, 0, 0, 0, time.UTC),
		} {
			for off := range int64(3) {
				f.Add(i, "", at.UnixMicro()-1+off)
			}
		}
		for _, bits := range []int{7, 8, 15, 16, 31, 32, 53, 62, 63} {
			f.Add(i, "\xff", int64(1)<<bits)
			f.Add(i, "\x00", int64(1)<<bits-1)
			f.Add(i, list.cursor, -int64(1)<<bits)
			f.Add(i, list.cursor, -int64(1)<<bits-1)
		}
		f.Add(i, strings.Repeat(list.cursor, 1000), int64(0))
		for _, odd := range []string{"", "AAAA", "f_________8BeXsujyt8wZOmIeCxw_Cq", "gAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "__________8BeXsujyt8wZOmIeCxw_Cq", "AAAAAH____8BeXsujyt8wZOmIeCxw_Cq", "AAAA AAAA", "AAAA\nAAAA", "\xff"} {
			f.Add(i, odd, int64(0))
		}
	}
	ask := func(t *testing.T, path, cursor string) {
		req := httptest.NewRequest("GET", "http://localhost"+path+"&cursor="+url.QueryEscape(cursor), nil)
		res := a.answerTo(t, req)
		if res.Code == 200 {
			if body := res.Body.Bytes(); !json.Valid(body) || !bytes.HasPrefix(body, []byte(`{"data":[`)) {
				t.Fatalf("%q: %s", cursor, body)
			}
		} else if !strings.Contains(res.Body.String(), "cursor") && !strings.Contains(res.Body.String(), "invalid_utf8") {
			t.Fatalf("%q: %s", cursor, res.Body)
		}
	}
	f.Fuzz(func(t *testing.T, list int, cursor string, key int64) {
		l := lists[uint(list)%uint(len(lists))]
		ask(t, l.path, cursor)
		own, err := base64.RawURLEncoding.DecodeString(l.cursor)
		if err != nil {
			t.Fatal(err)
		}
		crafted := binary.BigEndian.AppendUint64(own[:8:8], uint64(key))
		id := make([]byte, 16)
		copy(id, cursor)
		ask(t, l.path, base64.RawURLEncoding.EncodeToString(append(crafted, id...)))
	})
}
