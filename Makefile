.PHONY: build demo test bench generate lint clean

# The binary as it is shipped: static, without paths of the machine it was built on.
build:
	CGO_ENABLED=0 go build -trimpath -o bin/trainwright ./cmd/trainwright

# A real run over a real pipe: handoff in, seven phases, a trained model, a report. Leaves .demo/.
demo: build
	go run ./examples/demo -server bin/trainwright

# Installs what the tests need beside Go (.ci/install says what and why), then runs all of them.
# A process of the race detector would sleep for a second at its end; the tests start thousands.
test:
	.ci/install
	GORACE=atexit_sleep_ms=0 go test -race -timeout 30m ./...

# Figures beside peers and limits, each measured in one run: the server beside the official TypeScript and Go SDKs; logs
# beside tail and grep. Takes some minutes and 1 GB of the temporary folder.
bench:
	.ci/install
	go run ./server/bench
	go run ./internal/jobs/bench
	go run ./internal/dataset/bench

generate:
	go generate ./...

lint:
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
		if [ -n "$$unformatted" ]; then echo "gofmt -w these: $$unformatted"; exit 1; fi
	for os in linux darwin windows; do echo "vet $$os" && GOOS=$$os CGO_ENABLED=0 go vet ./... || exit 1; done
	go tool staticcheck ./...

clean:
	rm -rf bin .demo
