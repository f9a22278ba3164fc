// Command mininacos serves a Nacos-compatible naming server for local development until it is interrupted.
//
//	go run ./mininacos/cmd/mininacos -addr 127.0.0.1:8848 -cache 1s -v
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/nacos-naming/nacos/mininacos"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run serves until ctx ends. Its result is the exit code: 0, 1 if it cannot serve, 2 for wrong usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("mininacos", flag.ContinueOnError)
	flags.SetOutput(stderr)
	addr := flags.String("addr", "127.0.0.1:8848", "`host:port` to listen on; port 0 takes a free one")
	cache := flags.Duration("cache", 10*time.Second, "how long lists tell clients to keep them: changes are seen that long after")
	verbose := flags.Bool("v", false, "log what changes: instances, health, services")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "mininacos: unexpected argument %q\n", flags.Arg(0))
		flags.Usage()
		return 2
	}
	logger := zap.NewNop()
	if *verbose {
		logger = zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig()), zapcore.AddSync(stderr), zap.DebugLevel))
	}
	srv, err := mininacos.Run(mininacos.WithAddr(*addr), mininacos.WithCacheMillis(*cache), mininacos.WithLogger(logger))
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	defer srv.Close()
	fmt.Fprintf(stdout, "mininacos serves on %s\n", srv.URL())
	<-ctx.Done()
	return 0
}
