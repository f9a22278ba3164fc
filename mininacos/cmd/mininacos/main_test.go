package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/internal/leakcheck"
)

func TestEveryTestChecksForLeaks(t *testing.T) { leakcheck.Covered(t, ".") }

// S8: the command prints where it serves, serves until it is interrupted, and exits 0.
func TestS8_ServesUntilInterrupted(t *testing.T) {
	leakcheck.Check(t)
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	out, in := io.Pipe()
	code := make(chan int, 1)
	var stderr bytes.Buffer
	go func() { code <- run(ctx, []string{"-addr", "127.0.0.1:0"}, in, &stderr) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	url, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "mininacos serves on ")
	require.True(t, ok, line)

	resp, err := http.Get(url + "/v1/ns/operator/metrics")
	require.NoError(t, err)
	defer http.DefaultClient.CloseIdleConnections()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, `{"status":"UP"}`, string(body))

	// A port in use: a clear message, exit 1.
	var second bytes.Buffer
	addr := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/nacos")
	require.Equal(t, 1, run(ctx, []string{"-addr", addr}, io.Discard, &second))
	require.Contains(t, second.String(), "listen on "+addr)
	require.Contains(t, second.String(), "in use")

	interrupt()
	require.Equal(t, 0, <-code)
	require.Empty(t, stderr.String())
}

// S8: -cache is what lists say, -v logs what changes.
func TestS8_CacheAndLog(t *testing.T) {
	leakcheck.Check(t)
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	out, in := io.Pipe()
	code := make(chan int, 1)
	var stderr bytes.Buffer
	go func() { code <- run(ctx, []string{"-addr", "127.0.0.1:0", "-cache", "3s", "-v"}, in, &stderr) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	url := strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "mininacos serves on ")
	defer http.DefaultClient.CloseIdleConnections()
	resp, err := http.Post(url+"/v1/ns/instance?serviceName=orders&ip=10.0.0.1&port=80", "", nil)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	resp, err = http.Get(url + "/v1/ns/instance/list?serviceName=orders")
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Contains(t, string(body), `"cacheMillis":3000`)
	interrupt()
	require.Equal(t, 0, <-code)
	require.Contains(t, stderr.String(), "10.0.0.1")
}

func TestS8_Usage(t *testing.T) {
	leakcheck.Check(t)
	for _, tc := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"-port", "1"}, 2, "-port"},
		{[]string{"extra"}, 2, `unexpected argument "extra"`},
		{[]string{"-h"}, 0, "-addr"},
		{[]string{"-addr", "nonsense"}, 1, "mininacos: listen on nonsense"},
	} {
		var stderr bytes.Buffer
		require.Equal(t, tc.code, run(context.Background(), tc.args, io.Discard, &stderr), tc.args)
		require.Contains(t, stderr.String(), tc.text)
	}
}
