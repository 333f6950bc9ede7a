package db

// sqlc writes a method for each query of ../queries, checked against
// ../schema.sql. shorten.go has pgx scan the rows.

//go:generate go tool -modfile=../tools/go.mod sqlc generate --file ../sqlc.yaml
//go:generate go run shorten.go
