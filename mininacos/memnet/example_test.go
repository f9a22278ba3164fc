package memnet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/nacos-naming/nacos/mininacos/memnet"
)

// An HTTP server and a client on two hosts. In a test, do it in a synctest
// bubble, and the latency costs no time.
func Example() {
	n := memnet.New(1)
	n.SetLink("", "", memnet.Link{Latency: time.Millisecond})
	l, err := n.Host("10.0.0.1").Listen("tcp", ":8848")
	if err != nil {
		fmt.Println(err)
		return
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s", r.RemoteAddr)
	})}
	go srv.Serve(l)
	defer srv.Close()

	tr := &http.Transport{DialContext: n.Host("10.0.0.2").DialContext}
	defer tr.CloseIdleConnections()
	client := &http.Client{Transport: tr}
	resp, err := client.Get("http://10.0.0.1:8848/")
	if err != nil {
		fmt.Println(err)
		return
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	fmt.Printf("%s\n", body)

	srv.Close()
	_, err = client.Get("http://10.0.0.1:8848/")
	fmt.Println(err)
	// Output:
	// hello 10.0.0.2:32768
	// Get "http://10.0.0.1:8848/": dial tcp 10.0.0.1:8848: connect: connection refused
}

// A dial into a black hole hangs until its context ends.
func ExampleNetwork_BlackHole() {
	n := memnet.New(1)
	l, _ := n.Host("10.0.0.1").Listen("tcp", ":8848")
	defer l.Close()
	n.BlackHole("10.0.0.1", true)

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err := n.Host("10.0.0.2").DialContext(ctx, "tcp", "10.0.0.1:8848")
	fmt.Println(err)

	n.BlackHole("10.0.0.1", false)
	c, err := n.Host("10.0.0.2").DialContext(context.Background(), "tcp", "10.0.0.1:8848")
	fmt.Println(c.RemoteAddr(), err)
	c.Close()
	// Output:
	// dial tcp 10.0.0.1:8848: context deadline exceeded
	// 10.0.0.1:8848 <nil>
}

// Both ends of a connection that is cut see a reset.
func ExampleNetwork_CutConns() {
	n := memnet.New(1)
	l, _ := n.Host("10.0.0.1").Listen("tcp", ":8848")
	defer l.Close()
	c, _ := n.Host("10.0.0.2").DialContext(context.Background(), "tcp", "10.0.0.1:8848")
	defer c.Close()

	fmt.Println(n.CutConns("10.0.0.1", ""))
	_, err := c.Read(make([]byte, 1))
	fmt.Println(err, errors.Is(err, syscall.ECONNRESET))
	// Output:
	// 1
	// read tcp 10.0.0.2:32768->10.0.0.1:8848: read: connection reset by peer true
}

// Every datagram arrives twice.
func ExampleHost_ListenPacket() {
	n := memnet.New(1)
	n.SetLink("10.0.0.1", "10.0.0.2", memnet.Link{Duplicate: 1})
	a, _ := n.Host("10.0.0.1").ListenPacket("udp", ":9000")
	defer a.Close()
	b, _ := n.Host("10.0.0.2").ListenPacket("udp", ":0")
	defer b.Close()

	b.WriteTo([]byte("push"), &net.UDPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 9000})
	buf := make([]byte, 1500)
	for range 2 {
		size, from, _ := a.ReadFrom(buf)
		fmt.Printf("%s from %v\n", buf[:size], from)
	}
	// Output:
	// push from 10.0.0.2:32768
	// push from 10.0.0.2:32768
}

// A name that moves to another host.
func ExampleNetwork_AddName() {
	n := memnet.New(1)
	for _, ip := range []string{"10.0.0.1", "10.0.0.2"} {
		l, _ := n.Host(ip).Listen("tcp", ":8848")
		defer l.Close()
		n.AddName("nacos.test", ip)
		c, _ := n.Host("10.0.0.9").DialContext(context.Background(), "tcp", "nacos.test:8848")
		fmt.Println(c.RemoteAddr())
		c.Close()
	}
	// Output:
	// 10.0.0.1:8848
	// 10.0.0.2:8848
}
