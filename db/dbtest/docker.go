package dbtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

const (
	image      = "postgres:17-alpine"
	citusImage = "citusdata/citus:12.1"

	// With no registry in reach, a pull fails at once or never answers.
	probeTimeout     = 10 * time.Second
	pullTimeout      = 3 * time.Minute
	pullStartTimeout = 20 * time.Second
	containerTimeout = time.Minute
)

// startContainer starts an image in a container that ends with the process:
// the container's main process reads from a connection that this process holds
// open, and when that ends, so does all that runs in there; Docker then removes
// the container. So the reaper of testcontainers isn't needed, nor its image.
func startContainer(ctx context.Context, image string, parameters map[string]string) (_ *server, err error) {
	os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
	log.SetDefault(log.NewNoopLogger())
	docker, err := dialDocker(ctx)
	if err != nil {
		return nil, err
	}
	if err := needImage(ctx, docker.Client(), image); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, containerTimeout)
	defer cancel()
	var stdin net.Conn
	defer func() {
		if err != nil && stdin != nil {
			stdin.Close() // which ends the container
		}
	}()
	password := rand.Text()
	command := []string{"postgres"}
	for name, value := range parameters {
		command = append(command, "-c", name+"="+value)
	}
	postgres, err := testcontainers.Run(ctx, image,
		testcontainers.WithEnv(map[string]string{
			"POSTGRES_PASSWORD":    password,
			"POSTGRES_INITDB_ARGS": "--no-sync",
		}),
		testcontainers.WithExposedPorts("5432/tcp"),
		testcontainers.WithEntrypoint("sh", "-c", `docker-entrypoint.sh "$@" & exec cat`, "sh"),
		testcontainers.WithCmd(command...),
		testcontainers.WithConfigModifier(func(c *container.Config) {
			c.OpenStdin, c.StdinOnce = true, true
		}),
		testcontainers.WithHostConfigModifier(func(c *container.HostConfig) {
			c.AutoRemove = true
		}),
		testcontainers.WithAdditionalLifecycleHooks(testcontainers.ContainerLifecycleHooks{
			// Before the start, so that there is no moment in which the
			// container could be left behind running.
			PostCreates: []testcontainers.ContainerHook{func(_ context.Context, c testcontainers.Container) error {
				// The connection outlives ctx.
				attached, err := docker.Client().ContainerAttach(context.Background(), c.GetContainerID(),
					client.ContainerAttachOptions{Stream: true, Stdin: true})
				if err == nil {
					stdin = attached.Conn
					lifeline = append(lifeline, stdin)
				}
				return err
			}},
		}),
	)
	if err != nil {
		return nil, err
	}
	host, err := postgres.Host(ctx)
	if err != nil {
		return nil, err
	}
	port, err := postgres.MappedPort(ctx, "5432/tcp")
	if err != nil {
		return nil, err
	}
	// In a container that runs a Docker of its own, testcontainers takes the
	// outer network for the host, unless TESTCONTAINERS_HOST_OVERRIDE corrects it.
	return connectWhenReady(ctx, password, net.JoinHostPort("localhost", port.Port()), net.JoinHostPort(host, port.Port()))
}

// dialDocker finds Docker where testcontainers does, and asks whether it
// answers. Docker that hangs, or a panic over one that isn't there, is no
// Docker.
func dialDocker(ctx context.Context) (*testcontainers.DockerProvider, error) {
	type result struct {
		provider *testcontainers.DockerProvider
		err      error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("%v", p)
			}
			done <- r
		}()
		if r.provider, r.err = testcontainers.NewDockerProvider(); r.err != nil {
			return
		}
		_, r.err = r.provider.Client().Ping(ctx, client.PingOptions{})
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, fmt.Errorf("it doesn't answer: %w", r.err)
		}
		return r.provider, nil
	case <-time.After(probeTimeout):
		return nil, fmt.Errorf("it doesn't answer within %v", probeTimeout)
	}
}

// needImage pulls the image where Docker hasn't got it.
func needImage(ctx context.Context, docker client.APIClient, image string) (err error) {
	_, err = docker.ImageInspect(ctx, image)
	if !errdefs.IsNotFound(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	slow := time.AfterFunc(pullStartTimeout, cancel)
	pull, err := docker.ImagePull(ctx, image, client.ImagePullOptions{})
	slow.Stop()
	if err == nil {
		err = pull.Wait(ctx)
	}
	if err != nil {
		return fmt.Errorf("pull the image %s: %w", image, err)
	}
	return nil
}

// connectWhenReady waits for the server in a new container, at the first of the
// addresses that leads to it; the password tells it from others. The image's
// entrypoint first runs a server that doesn't listen on the network, so the
// first connection that succeeds is one to the server that stays.
func connectWhenReady(ctx context.Context, password string, addresses ...string) (*server, error) {
	for {
		var errs []error
		for _, address := range addresses {
			u := url.URL{
				Scheme:   "postgres",
				User:     url.UserPassword("postgres", password),
				Host:     address,
				Path:     "postgres",
				RawQuery: "sslmode=disable&connect_timeout=5",
			}
			s, err := connect(ctx, u.String())
			if err == nil {
				return s, nil
			}
			errs = append(errs, err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the server in the container didn't answer within %v: %w", containerTimeout, errors.Join(errs...))
		case <-time.After(50 * time.Millisecond):
		}
	}
}
