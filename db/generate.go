package db

// sqlc writes a method for each query of ../queries, checked against
// ../schema.sql.

//go:generate go tool -modfile=../tools/go.mod sqlc generate --file ../sqlc.yaml
