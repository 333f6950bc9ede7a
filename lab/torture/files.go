package torture

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// A desk is a client that uploads files, names them in messages of a conversation
// of its own, prunes these and reads the files back. The desks of a tenant
// have few files between them, so that one prunes the last message that names a file
// while another uploads it or names it.
type desk struct {
	*run
	rng   *rand.Rand
	c     *conversation
	other *tenant  // who may see nothing
	named []*filed // what stands
}

// A filed is a message that names files.
type filed struct {
	id    uuid.UUID
	files []deskFile
}

// A deskFile is text that stands in a file as a JSON string.
type deskFile string

// deskFiles are how many files the desks have between them.
const deskFiles = 5

func (f deskFile) bytes() []byte {
	raw, err := json.Marshal(string(f))
	if err != nil {
		panic(fmt.Sprintf("torture: %v", err)) // text only
	}
	return raw
}

func (f deskFile) hash() string {
	sum := sha256.Sum256(f.bytes())
	return hex.EncodeToString(sum[:])
}

// addDesks makes two desks of each tenant.
func (r *run) addDesks(ctx context.Context) error {
	for i := range 2 * len(r.tenants) {
		t, other := r.tenants[i%len(r.tenants)], r.tenants[(i+1)%len(r.tenants)]
		c := r.create(ctx, t, false)
		if c.state != acknowledged {
			return fmt.Errorf("no conversation could be made for the files of %s", t.name)
		}
		r.desks = append(r.desks, &desk{run: r, rng: r.rng("desk", i), c: c, other: other})
	}
	return nil
}

// work works until ctx ends.
func (d *desk) work(ctx context.Context) {
	for ctx.Err() == nil {
		d.gate.RLock()
		if ctx.Err() == nil && !d.over.Load() {
			d.turn(ctx)
		}
		d.gate.RUnlock()
		d.sleep(ctx, 4*d.cfg.Pause) // lest they take the writers' time
	}
}

func (d *desk) turn(ctx context.Context) {
	switch n := d.rng.IntN(10); {
	case len(d.named) == 0, n < 4:
		d.name(ctx)
	case n < 6, len(d.named) > 12:
		d.prune(ctx)
	default:
		d.read(ctx, d.named[d.rng.IntN(len(d.named))])
	}
}

// upload stores a file, and returns the part that names it.
func (d *desk) upload(ctx context.Context, f deskFile) (part json.RawMessage, ok bool) {
	var got struct {
		Hash string
		Part json.RawMessage
	}
	a, attempts := d.persist(ctx, d.rng, func(server int) answer {
		return d.as(d.c).do(ctx, d.rng, server, http.MethodPost, "/v1/attachments?name=desk.txt", string(f), &got)
	})
	d.report.operation("upload", a.outcome(), attempts)
	if a.outcome() == acknowledged && got.Hash != f.hash() {
		d.report.violate("attachment", "a file of the hash %s was stored as %s", f.hash(), got.Hash)
	}
	return got.Part, a.outcome() == acknowledged
}

// name appends a message that names files. One that another desk deletes before
// the append is uploaded again.
func (d *desk) name(ctx context.Context) {
	n := &filed{id: uuid.Must(uuid.NewV7())}
	for range 1 + d.rng.IntN(2) {
		n.files = append(n.files, deskFile(fmt.Sprintf("%s file %d %s", d.c.tenant.name, d.rng.IntN(deskFiles), strings.Repeat("hazel ", 40))))
	}
	for range persistence {
		parts := []json.RawMessage{json.RawMessage(`{"type":"text","text":"see these"}`)}
		for _, f := range n.files {
			part, ok := d.upload(ctx, f)
			if !ok {
				return
			}
			parts = append(parts, part)
		}
		body := map[string]any{"id": n.id, "parent_id": nil, "role": "user", "content": parts}
		a, attempts := d.persist(ctx, d.rng, func(server int) answer {
			return d.as(d.c).do(ctx, d.rng, server, http.MethodPost, d.path(d.c)+"/messages", body, nil)
		})
		d.report.operation("name a file", a.outcome(), attempts)
		if a.outcome() == acknowledged {
			d.named = append(d.named, n)
		}
		if a.code != "attachment_not_found" {
			return
		}
	}
}

func (d *desk) prune(ctx context.Context) {
	i := d.rng.IntN(len(d.named))
	n := d.named[i]
	d.named = append(d.named[:i], d.named[i+1:]...) // whatever comes of it, it may be gone
	a, attempts := d.persist(ctx, d.rng, func(server int) answer {
		return d.as(d.c).do(ctx, d.rng, server, http.MethodDelete, d.path(d.c)+"/messages/"+n.id.String(), nil, nil)
	})
	d.report.operation("prune what names a file", a.outcome(), attempts)
	if a.code == "message_not_found" && attempts == 1 {
		d.report.violate("lost", "conversation %s: message %s names a file, was acknowledged and isn't there", d.c.id, n.id)
	}
}

// read reads the files of a message that stands: they are there, as they were, and
// for nobody else.
func (d *desk) read(ctx context.Context, n *filed) {
	for _, f := range n.files {
		path := "/v1/attachments/" + f.hash()
		a := d.as(d.c).do(ctx, nil, d.any(), http.MethodGet, path, nil, nil)
		d.report.operation("read a file", a.outcome(), 1)
		switch {
		case a.status == http.StatusNotFound:
			d.report.violate("attachment", "conversation %s: message %s names the file %s, which isn't there", d.c.id, n.id, f.hash())
		case a.outcome() == acknowledged && string(a.body) != string(f.bytes()):
			d.report.violate("attachment", "the file %s comes back as %.200q", f.hash(), a.body)
		case a.outcome() == acknowledged:
			d.report.count(func(r *Report) { r.Checks.Files++ })
		}
		if b := d.client.as(d.other).do(ctx, nil, d.any(), http.MethodGet, path, nil, nil); b.outcome() == acknowledged {
			d.report.violate("tenant", "the file %s of %s is given to %s", f.hash(), d.c.tenant.name, d.other.name)
		}
	}
}

// checkDesks reads all files that messages name, and an export, while nothing is
// under way.
func (r *run) checkDesks(ctx context.Context) {
	for _, d := range r.desks {
		for _, n := range d.named {
			d.read(ctx, n)
		}
		a := r.as(d.c).do(ctx, nil, r.any(), http.MethodGet, r.path(d.c)+"/export", nil, nil)
		if a.outcome() != acknowledged {
			continue
		}
		for _, n := range d.named {
			for _, f := range n.files {
				if line := fmt.Sprintf(`{"type":"attachment","hash":"%s","name":"desk.txt","data":"%s"}`, f.hash(), base64.StdEncoding.EncodeToString(f.bytes())); !strings.Contains(string(a.body), line) {
					r.report.violate("export", "the export of %s lacks the file %s of message %s", d.c.id, f.hash(), n.id)
				}
			}
		}
		r.report.count(func(r *Report) { r.Checks.FileExports++ })
	}
}
