# trainwright over stdio, for MCP clients that start a container:
#
#   docker build -t trainwright --build-arg VERSION=0.1.0 .
#   docker run -i --rm --init --mount type=bind,src="$PWD",dst=/workspace trainwright
#
# The binary is static and needs nothing. Python is in the image because training scripts need it: a job runs with the
# python3 of the container, or with a .venv of the project that was made for it. Build on this image to add PyTorch and
# the like. A job outlives the session but not the container: to keep jobs, keep the container (no --rm) until they end.
FROM golang:1.26-bookworm AS build
ARG VERSION=
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.release=${VERSION}" -o /out/trainwright ./cmd/trainwright

FROM python:3.13-slim-bookworm
LABEL io.modelcontextprotocol.server.name="io.github.trainwright/trainwright"
COPY --from=build /out/trainwright /usr/local/bin/trainwright
# Files in the mounted project belong to the user who runs it: docker run --user "$(id -u):$(id -g)" where that is not 1000.
RUN useradd --uid 1000 --create-home trainer
USER trainer
WORKDIR /workspace
ENTRYPOINT ["trainwright"]
CMD ["serve"]
