package dbtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"time"

	"github.com/testcontainers/testcontainers-go"
)

// containerTimeout is how long a container gets, its image included.
const containerTimeout = 3 * time.Minute

// startContainer starts Postgres in Docker. The reaper of testcontainers removes the
// container when the process has ended.
func startContainer(ctx context.Context, image string) (_ *server, err error) {
	defer func() {
		if p := recover(); p != nil { // so testcontainers says that it finds no Docker
			err = fmt.Errorf("%v", p)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, containerTimeout)
	defer cancel()
	const port = "5432/tcp"
	password := rand.Text()
	command := []string{"postgres"}
	for name, value := range parameters() {
		command = append(command, "-c", name+"="+value)
	}
	postgres, err := testcontainers.Run(ctx, image, testcontainers.WithExposedPorts(port), testcontainers.WithCmd(command...),
		testcontainers.WithEnv(map[string]string{"POSTGRES_PASSWORD": password, "POSTGRES_INITDB_ARGS": "--no-sync"}))
	if err != nil {
		return nil, err
	}
	address, err := postgres.PortEndpoint(ctx, port, "")
	if err != nil {
		return nil, err
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword("postgres", password), Host: address, Path: "postgres", RawQuery: "sslmode=disable&connect_timeout=5"}
	for { // the image first runs a server that doesn't listen
		s, err := connect(ctx, u.String())
		if err == nil {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("it doesn't answer: %w", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
