// Command container runs Postgres in Docker for tests, in a module of its own, so
// that who imports Coppice doesn't download testcontainers. It prints the address
// of the container's port, and ends with its standard input; then the container is
// removed. The password is that of PGPASSWORD.
//
//	container postgres:17-alpine fsync=off max_connections=200
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/testcontainers/testcontainers-go"
)

// timeout is how long a container gets, its image included.
const timeout = 3 * time.Minute

func main() {
	log.SetFlags(0)
	// Ctrl-C is meant for the tests, and what is said after their end has no reader.
	signal.Ignore(os.Interrupt, syscall.SIGPIPE)
	if len(os.Args) < 2 {
		log.Fatal("usage: container IMAGE [NAME=VALUE]...")
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		log.Fatal(err)
	}
}

func run(image string, parameters []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	command := []string{"postgres"}
	for _, p := range parameters {
		command = append(command, "-c", p)
	}
	const port = "5432/tcp"
	container, err := testcontainers.Run(ctx, image, testcontainers.WithExposedPorts(port), testcontainers.WithCmd(command...),
		testcontainers.WithEnv(map[string]string{"POSTGRES_PASSWORD": os.Getenv("PGPASSWORD"), "POSTGRES_INITDB_ARGS": "--no-sync"}))
	if err != nil {
		return err
	}
	defer testcontainers.TerminateContainer(container)
	address, err := container.PortEndpoint(ctx, port, "")
	if err != nil {
		return err
	}
	fmt.Println(address)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
