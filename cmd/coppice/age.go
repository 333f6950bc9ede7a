package main

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// An age is a duration that may be given in days, such as 90d.
type age time.Duration

// UnmarshalText reads 90d, or what Go writes durations as. It is 1 s or more.
func (a *age) UnmarshalText(text []byte) error {
	d, err := parseAge(string(text))
	*a = age(d)
	return err
}

func parseAge(text string) (time.Duration, error) {
	const most = 36500 // days, a century
	bad := fmt.Errorf("%q is no age: give days, such as 90d, or hours, such as 36h", text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil || n < 1 || n > most {
			return 0, bad
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d > most*24*time.Hour {
		return 0, bad
	}
	return d, nil
}

// A moment is a time that is given as a day here, as RFC 3339, or as an age.
type moment struct{ time.Time }

// UnmarshalText reads 2026-01-31, 2026-01-31T12:00:00Z, or 7d.
func (m *moment) UnmarshalText(text []byte) (err error) {
	if d, err := parseAge(string(text)); err == nil {
		m.Time = time.Now().Add(-d)
		return nil
	}
	if m.Time, err = time.ParseInLocation(time.DateOnly, string(text), time.Local); err == nil {
		return nil
	}
	if m.Time, err = time.Parse(time.RFC3339, string(text)); err != nil {
		return fmt.Errorf("%q is no time: give a day such as 2026-01-31, a time such as 2026-01-31T12:00:00Z, or an age such as 7d", text)
	}
	return nil
}

// set puts the time into a query, if there is one.
func (m moment) set(query url.Values, name string) {
	if !m.IsZero() {
		query.Set(name, m.UTC().Format(time.RFC3339Nano))
	}
}

// retention reads --retention: an age for all tenants, and TENANT=AGE for one.
func retention(values []string) (map[string]time.Duration, error) {
	kept := map[string]time.Duration{}
	for _, value := range values {
		tenant, text := "", value
		if i := strings.LastIndexByte(value, '='); i >= 0 { // a tenant's id may hold one
			if tenant, text = value[:i], value[i+1:]; tenant == "" {
				return nil, usagef("--retention %s names no tenant: give AGE, or TENANT=AGE", value)
			}
		}
		if _, twice := kept[tenant]; twice {
			return nil, usagef("--retention is given twice for the same tenant, or twice for all")
		}
		var err error
		if kept[tenant], err = parseAge(text); err != nil {
			return nil, usagef("--retention %s: %v", value, err)
		}
	}
	return kept, nil
}
