package main

import (
	"fmt"
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
