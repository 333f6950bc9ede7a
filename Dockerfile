# The program alone, without Postgres: give it one by DATABASE_URL, as
# compose.yaml does.
# It is compiled by the machine's own processor, whichever the image is for.
FROM --platform=$BUILDPLATFORM golang:1.26-alpine AS build
WORKDIR /src
COPY . .
# What `coppice version` says, for example v1.2.3.
ARG VERSION=
ARG TARGETOS
ARG TARGETARCH
# Downloads what the program needs, and not what its tests need besides.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -tags grpcnotrace -ldflags "-s -w -X main.version=$VERSION" -o /coppice ./cmd/coppice

FROM alpine:3.22
COPY --from=build /coppice /usr/local/bin/coppice
# Nobody in particular: the program writes no file where it has a DATABASE_URL.
USER 65532:65532
# Every address of the container, or nothing could be published; the server
# refuses that until there is an API key.
ENV COPPICE_ADDR=0.0.0.0:8787 \
    COPPICE_LOG_FORMAT=json
EXPOSE 8787
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s \
    CMD wget -q -O /dev/null "http://127.0.0.1:${COPPICE_ADDR##*:}/readyz"
ENTRYPOINT ["coppice"]
CMD ["serve"]
