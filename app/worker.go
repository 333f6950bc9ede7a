package app

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
)

// MaxWorkerID is the largest number of characters in the ID of Config.Jobs. The
// table of jobs holds no more.
const MaxWorkerID = 100

// workerID names a Coppice among those on its database, the same at each start.
// No two that run at once have the same: a private Postgres has one Coppice, and
// an address one listener. Without either each start makes a new name.
func workerID(cfg DatabaseConfig, address string) (string, error) {
	where := address
	if cfg.URL == "" {
		where = cfg.DataDir
	}
	if where == "" {
		return rand.Text(), nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("the host's name, for which Config.Jobs.ID can stand in: %w", err)
	}
	id := host + " " + where
	if len(id) > MaxWorkerID {
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:])
	}
	return id, nil
}
