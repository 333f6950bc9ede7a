package oidc

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// cookies have values that only the servers of this installation can make.
type cookies struct {
	key     []byte
	purpose string // is part of what is signed
	secure  bool   // browsers send them over TLS only
	now     func() time.Time
}

// sealed is what a cookie has.
type sealed struct {
	Value json.RawMessage `json:"value"`
	Until int64           `json:"until"` // Unix seconds
}

// name is a cookie's. The prefix keeps other servers of the same domain from setting it.
func (c cookies) name(of string) string {
	if c.secure {
		return "__Host-" + of
	}
	return of
}

// sign returns the signature of a cookie's content, which is good in that cookie only.
func (c cookies) sign(of, content string) string {
	mac := hmac.New(sha256.New, c.key)
	mac.Write([]byte(c.purpose + of + "\x00" + content))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (c cookies) cookie(of, value string, seconds int) *http.Cookie {
	return &http.Cookie{Name: c.name(of), Value: value, Path: "/", MaxAge: seconds, HttpOnly: true, Secure: c.secure, SameSite: http.SameSiteLaxMode}
}

// make returns a cookie that has a value for so long.
func (c cookies) make(of string, value any, age time.Duration) *http.Cookie {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err) // a struct of strings
	}
	whole, err := json.Marshal(sealed{encoded, c.now().Add(age).Unix()})
	if err != nil {
		panic(err)
	}
	content := base64.RawURLEncoding.EncodeToString(whole)
	return c.cookie(of, content+"."+c.sign(of, content), int(age.Seconds()))
}

// remove returns what takes a cookie from a browser.
func (c cookies) remove(of string) *http.Cookie { return c.cookie(of, "", -1) }

// read takes the value from a request's cookie, and reports whether there is a good one.
func (c cookies) read(r *http.Request, of string, value any) bool {
	cookie, err := r.Cookie(c.name(of))
	if err != nil {
		return false
	}
	content, signature, _ := strings.Cut(cookie.Value, ".")
	if !hmac.Equal([]byte(signature), []byte(c.sign(of, content))) {
		return false
	}
	var s sealed
	whole, err := base64.RawURLEncoding.DecodeString(content)
	return err == nil && json.Unmarshal(whole, &s) == nil && c.now().Unix() < s.Until && json.Unmarshal(s.Value, value) == nil
}
