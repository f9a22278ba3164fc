package memnet_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nacos-naming/nacos/mininacos/memnet"
)

// bubble runs f in virtual time on a fresh network with one connection.
func bubble(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memnet.New(1))
		f(t, r)
		r.close(t)
	})
}

func TestConnBasicIO(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		big := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
		sent := after(func() error {
			if n, err := r.client.Write(big); n != len(big) {
				return err
			}
			return r.client.(interface{ CloseWrite() error }).CloseWrite()
		})
		got, err := io.ReadAll(r.server)
		if err != nil || !bytes.Equal(got, big) {
			t.Errorf("read %d bytes, %v; want %d", len(got), err, len(big))
		}
		if s := <-sent; s.err != nil {
			t.Error(s.err)
		}
	})
}

func TestConnHalfClose(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		half := r.client.(interface{ CloseWrite() error })
		write(t, r.client, "question")
		for range 2 {
			if err := half.CloseWrite(); err != nil {
				t.Error(err)
			}
		}
		_, err := r.client.Write([]byte("x"))
		wantErr(t, err, "write", syscall.EPIPE)
		wantRead(t, r.server, "question")
		for range 2 { // the end stays the end
			if err := readErr(r.server); err != io.EOF {
				t.Errorf("read after the end: %v, want EOF", err)
			}
		}
		write(t, r.server, "answer")
		wantRead(t, r.client, "answer")
		r.client.Close()
		wantErr(t, half.CloseWrite(), "close", net.ErrClosed)
	})
}

func TestConnPastDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		write(t, r.client, "data")
		time.Sleep(time.Second)
		r.server.SetDeadline(time.Unix(1, 0))
		// Data that is there does not help, as with real sockets.
		err := readErr(r.server)
		wantErr(t, err, "read", os.ErrDeadlineExceeded)
		var e net.Error
		if !errors.As(err, &e) || !e.Timeout() {
			t.Errorf("%v is no timeout", err)
		}
		_, err = r.server.Write([]byte("x"))
		wantErr(t, err, "write", os.ErrDeadlineExceeded)
		r.server.SetDeadline(time.Time{})
		wantRead(t, r.server, "data")
		write(t, r.server, "more")
		wantRead(t, r.client, "more")
	})
}

func TestConnFutureDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		start := time.Now()
		r.client.SetReadDeadline(start.Add(3 * time.Second))
		wantErr(t, readErr(r.client), "read", os.ErrDeadlineExceeded)
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("timed out after %v, want exactly 3s", took)
		}
		// A write of more than the window tells how much went.
		start = time.Now()
		r.client.SetWriteDeadline(start.Add(time.Second))
		n, err := r.client.Write(make([]byte, 100_000))
		wantErr(t, err, "write", os.ErrDeadlineExceeded)
		if n != 64<<10 || time.Since(start) != time.Second {
			t.Errorf("wrote %d bytes in %v, want the window of 65536 in 1s", n, time.Since(start))
		}
	})
}

// A deadline changed during a Read or Write holds for it.
func TestConnPresentDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.client.SetReadDeadline(time.Now().Add(time.Hour))
		read := after(func() error { return readErr(r.client) })
		written := after(func() error { _, err := r.client.Write(make([]byte, 100_000)); return err })
		time.Sleep(time.Second)
		r.client.SetReadDeadline(time.Now().Add(time.Second)) // sooner
		time.Sleep(time.Second / 2)
		r.client.SetReadDeadline(time.Now().Add(2 * time.Second)) // later again
		got := <-read
		wantErr(t, got.err, "read", os.ErrDeadlineExceeded)
		if got.took != 3500*time.Millisecond {
			t.Errorf("read took %v, want 3.5s", got.took)
		}
		r.client.SetDeadline(time.Now())
		synctest.Wait() // no time has to pass
		select {
		case got = <-written:
			wantErr(t, got.err, "write", os.ErrDeadlineExceeded)
		default:
			t.Error("the write still waits")
			r.client.Close()
			<-written
		}
	})
}

func TestConnCloseUnblocks(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var all []<-chan result
		for range 3 { // also those that wait behind the first one
			all = append(all, after(func() error { return readErr(r.client) }))
			all = append(all, after(func() error { _, err := r.client.Write(make([]byte, 100_000)); return err }))
		}
		accept := after(func() error { _, err := r.listener.Accept(); return err })
		time.Sleep(time.Second)
		r.client.Close()
		r.listener.Close()
		for i, done := range all {
			wantErr(t, (<-done).err, []string{"read", "write"}[i%2], net.ErrClosed)
		}
		wantErr(t, (<-accept).err, "accept", net.ErrClosed)
		wantErr(t, r.client.Close(), "close", net.ErrClosed)
		wantErr(t, r.listener.Close(), "close", net.ErrClosed)
		wantErr(t, readErr(r.client), "read", net.ErrClosed)
		_, err := r.client.Write(nil)
		wantErr(t, err, "write", net.ErrClosed)
		for _, set := range []func(time.Time) error{r.client.SetDeadline, r.client.SetReadDeadline, r.client.SetWriteDeadline} {
			wantErr(t, set(time.Time{}), "set", net.ErrClosed)
		}
	})
}

// A connection closed with nothing unread ends with EOF; what the other end
// writes then is answered with a reset.
func TestConnWriteToClosed(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		write(t, r.server, "last words")
		r.server.Close()
		wantRead(t, r.client, "last words")
		if err := readErr(r.client); err != io.EOF {
			t.Errorf("read = %v, want EOF", err)
		}
		write(t, r.client, "the first write goes into the void")
		time.Sleep(time.Second)
		_, err := r.client.Write([]byte("x"))
		wantErr(t, err, "write", syscall.EPIPE)
		if err := readErr(r.client); err != io.EOF {
			t.Errorf("read = %v, want EOF still", err)
		}
	})
}

func TestConnCloseWithUnreadResets(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		blocked := after(func() error { _, err := r.client.Write(make([]byte, 100_000)); return err })
		write(t, r.server, "arrives before the reset")
		time.Sleep(time.Second)
		r.server.Close()
		wantErr(t, (<-blocked).err, "write", syscall.ECONNRESET)
		wantRead(t, r.client, "arrives before the reset")
		for range 2 {
			wantErr(t, readErr(r.client), "read", syscall.ECONNRESET)
		}
	})
}

// 64 KiB fit in; a Write beyond waits for the reader.
func TestConnWindow(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		write(t, r.client, string(make([]byte, 64<<10)))
		more := after(func() error { _, err := r.client.Write([]byte("more")); return err })
		time.Sleep(time.Minute)
		select {
		case <-more:
			t.Fatal("written though the window is full")
		default:
		}
		io.ReadFull(r.server, make([]byte, 40<<10))
		got := <-more
		if got.err != nil {
			t.Error(got.err)
		}
		about(t, "write", got.took, time.Minute)
	})
}

// Concurrent Writes do not mix, however large; concurrent Reads lose nothing.
func TestConnConcurrentReadWrite(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		const writers, size = 4, 200_000
		var writing, reading sync.WaitGroup
		for i := range writers {
			writing.Go(func() {
				if _, err := r.client.Write(bytes.Repeat([]byte{byte('a' + i)}, size)); err != nil {
					t.Error(err)
				}
			})
		}
		got, err := io.ReadAll(io.LimitReader(r.server, writers*size))
		if err != nil || len(got) != writers*size {
			t.Fatalf("read %d, %v", len(got), err)
		}
		for i := range writers {
			part := got[i*size : (i+1)*size]
			if !bytes.Equal(part, bytes.Repeat(part[:1], size)) {
				t.Errorf("write %d is mixed with others", i)
			}
		}
		writing.Wait()

		var total [3]int
		for i := range total {
			reading.Go(func() {
				b := make([]byte, 1000)
				for {
					n, err := r.server.Read(b)
					total[i] += n
					if err != nil {
						return
					}
				}
			})
		}
		for range 100 {
			write(t, r.client, "0123456789")
		}
		r.client.Close()
		reading.Wait()
		if sum := total[0] + total[1] + total[2]; sum != 1000 {
			t.Errorf("readers got %d bytes, want 1000", sum)
		}
	})
}

func TestConnZeroLength(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		if n, err := r.client.Read(nil); n != 0 || err != nil {
			t.Errorf("Read(nil) = %d, %v", n, err)
		}
		if n, err := r.client.Write(nil); n != 0 || err != nil {
			t.Errorf("Write(nil) = %d, %v", n, err)
		}
	})
}

func TestConnAddresses(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c2, s2 := r.connect(t)
		defer c2.Close()
		defer s2.Close()
		local, ok := r.client.LocalAddr().(*net.TCPAddr)
		if !ok || local.IP.String() != clientIP || local.Port == 0 {
			t.Errorf("local address = %v", r.client.LocalAddr())
		}
		if got := r.client.RemoteAddr().String(); got != serverIP+":8848" || got != r.server.LocalAddr().String() {
			t.Errorf("remote address = %v, the server's %v", got, r.server.LocalAddr())
		}
		if got := r.server.RemoteAddr().String(); got != local.String() {
			t.Errorf("the server sees %v, want %v", got, local)
		}
		if c2.LocalAddr().String() == local.String() {
			t.Errorf("two connections from %v", local)
		}
		if r.OpenConns() != 2 || r.Dials() != 2 {
			t.Errorf("open = %d, dials = %d, want 2", r.OpenConns(), r.Dials())
		}
		c2.Close()
		if r.OpenConns() != 2 {
			t.Error("a connection is open until both ends are closed")
		}
		s2.Close()
		if r.OpenConns() != 1 || r.Dials() != 2 {
			t.Errorf("open = %d, dials = %d, want 1 and 2", r.OpenConns(), r.Dials())
		}
	})
}

// Everything at once from everywhere: the race detector is the judge.
func TestConnRacyUse(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var wg sync.WaitGroup
		for _, c := range []net.Conn{r.client, r.server} {
			for range 4 {
				wg.Go(func() {
					b := make([]byte, 512)
					for range 50 {
						c.SetReadDeadline(time.Now().Add(time.Microsecond))
						c.Read(b)
					}
				})
				wg.Go(func() {
					for range 50 {
						c.SetWriteDeadline(time.Now().Add(time.Microsecond))
						c.Write(make([]byte, 5000))
					}
				})
			}
			wg.Go(func() {
				time.Sleep(20 * time.Microsecond)
				c.Close()
			})
		}
		wg.Wait()
	})
}
