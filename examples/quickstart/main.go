// Command quickstart tells the story of a service on Nacos: providers come, change and go, and a consumer
// sees it. It needs nothing but Go: it starts mininacos in the process, or uses the real server at
// NACOS_ADDR (host:port) when that is set. It exits with 0 when everything happened and nothing is left
// running, else with 1 and the name of the step that did not happen.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/nacos-naming/nacos"
	"github.com/nacos-naming/nacos/mininacos"
)

const picks = 10_000

// times are what differs between mininacos, which tells clients to ask for changes each second, and a real
// server, which tells them each 10 s: the unhealthy provider must be listed for longer than that.
type times struct {
	limit                     time.Duration // of the whole story
	beat, unhealthy, removals time.Duration // of the provider that stops beating
}

var (
	miniTimes = times{limit: 20 * time.Second, beat: time.Second, unhealthy: 2 * time.Second, removals: 6 * time.Second}
	realTimes = times{limit: 60 * time.Second, beat: time.Second, unhealthy: 3 * time.Second, removals: 20 * time.Second}
)

func main() {
	before := runtime.NumGoroutine()
	err := run(os.Stdout, os.Getenv("NACOS_ADDR"))
	if err == nil {
		err = nothingLeft(os.Stdout, before)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// run tells the story, on mininacos if addr is empty.
func run(out io.Writer, addr string) error {
	if addr != "" {
		service := "orders-" + strconv.FormatInt(time.Now().Unix(), 10) // nobody else's
		return tell(&story{out: out, service: service, times: realTimes}, addr)
	}
	srv, err := mininacos.Run(mininacos.WithCacheMillis(time.Second))
	if err != nil {
		return fmt.Errorf("start mininacos: %w", err)
	}
	defer srv.Close()
	return tell(&story{out: out, service: "orders", times: miniTimes}, srv.Addr())
}

// tell goes through the steps.
func tell(s *story, addr string) error {
	s.start, s.events, s.done = time.Now(), make(chan nacos.Event, 16), make(chan struct{})
	defer s.close()
	s.say("the server is at %s", addr)
	if err := s.connect(addr); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.times.limit)
	defer cancel()
	for _, step := range s.steps() {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("did not happen: %s: %w", step.name, err)
		}
	}
	return nil
}

// story is what the steps share.
type story struct {
	out     io.Writer
	service string
	times   times
	start   time.Time

	providers, third, consumer *nacos.NamingService
	a, b, c                    nacos.Instance
	regA                       *nacos.Registration

	events chan nacos.Event // what the consumer's subscription gets
	done   chan struct{}    // closed when nobody takes events any more
}

type step struct {
	name string
	do   func(ctx context.Context) error
}

func (s *story) steps() []step {
	return []step{
		{"two providers register", s.register},
		{"a consumer subscribes and gets the list", s.subscribe},
		{"selections follow the weights", s.selections},
		{"a third provider is seen", s.thirdAppears},
		{"an update is seen", s.update},
		{"a provider that stops beating is seen unhealthy", s.unhealthy},
		{"the unhealthy provider is removed", s.removed},
		{"shutdown deregisters the rest", s.shutdown},
	}
}

// say prints a line with the seconds since the start.
func (s *story) say(format string, args ...any) {
	fmt.Fprintf(s.out, "%5.1f s  %s\n", time.Since(s.start).Seconds(), fmt.Sprintf(format, args...))
}

// connect makes three clients, as three processes would have.
func (s *story) connect(addr string) error {
	for _, ns := range []**nacos.NamingService{&s.providers, &s.third, &s.consumer} {
		var err error
		if *ns, err = nacos.NewNamingService(nacos.WithServers(addr)); err != nil {
			return fmt.Errorf("make a client: %w", err)
		}
	}
	return nil
}

// close ends what a step that failed left open; after the last step there is nothing.
func (s *story) close() {
	close(s.done)
	for _, ns := range []*nacos.NamingService{s.providers, s.third, s.consumer} {
		if ns != nil {
			ns.Close()
		}
	}
}

func (s *story) register(ctx context.Context) (err error) {
	s.a, s.b = nacos.NewInstance("10.0.0.1", 8080), nacos.NewInstance("10.0.0.2", 8080)
	s.b.Weight = 3
	if s.regA, err = s.providers.RegisterInstance(ctx, s.service, s.a); err != nil {
		return err
	}
	if _, err = s.providers.RegisterInstance(ctx, s.service, s.b); err != nil {
		return err
	}
	s.say("two providers of %q registered: %s and %s", s.service, s.a, s.b)
	return nil
}

func (s *story) subscribe(ctx context.Context) error {
	_, err := s.consumer.Subscribe(s.service, func(e nacos.Event) {
		select {
		case s.events <- e:
		case <-s.done:
		}
	})
	if err != nil {
		return err
	}
	e, err := s.await(ctx, func(e nacos.Event) bool { return len(e.Instances) == 2 })
	if err != nil {
		return err
	}
	s.say("the consumer subscribed and got %d instances (first list: %t, from: %s)", len(e.Instances), e.Initial, e.Source)
	return nil
}

// await returns the first event that match accepts; it passes over the others.
func (s *story) await(ctx context.Context, match func(nacos.Event) bool) (nacos.Event, error) {
	for {
		select {
		case e := <-s.events:
			if match(e) {
				return e, nil
			}
		case <-ctx.Done():
			return nacos.Event{}, fmt.Errorf("no such event within the %s of the story", s.times.limit)
		}
	}
}

// find returns the one of the list at the address of in.
func find(list []nacos.Instance, in nacos.Instance) (nacos.Instance, bool) {
	i := slices.IndexFunc(list, func(o nacos.Instance) bool { return o.Addr() == in.Addr() })
	if i < 0 {
		return nacos.Instance{}, false
	}
	return list[i], true
}

func (s *story) selections(ctx context.Context) error {
	handle := s.consumer.Service(s.service)
	counts := make(map[string]int)
	begin := time.Now()
	for range picks {
		in, err := handle.SelectOne(ctx)
		if err != nil {
			return err
		}
		counts[in.Addr()]++
	}
	s.say("%d selections by weight in %s:", picks, time.Since(begin).Round(10*time.Microsecond))
	return s.table(counts)
}

// table compares the shares with the weights; 3 points are more than six standard deviations.
func (s *story) table(counts map[string]int) error {
	var off error
	fmt.Fprintf(s.out, "           %-14s  %6s  %8s  %6s\n", "instance", "weight", "expected", "chosen")
	for _, in := range []nacos.Instance{s.a, s.b} {
		want := 100 * in.Weight / (s.a.Weight + s.b.Weight)
		got := 100 * float64(counts[in.Addr()]) / picks
		fmt.Fprintf(s.out, "           %-14s  %6g  %7.1f%%  %5.1f%%\n", in.Addr(), in.Weight, want, got)
		if got < want-3 || got > want+3 {
			off = errors.Join(off, fmt.Errorf("%s: %.1f%% instead of %.1f%%", in.Addr(), got, want))
		}
	}
	return off
}

// thirdAppears registers a provider of a client of its own, with short timeouts.
func (s *story) thirdAppears(ctx context.Context) error {
	millis := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	s.c = nacos.NewInstance("10.0.0.3", 8080)
	s.c.Metadata = nacos.NewMetadata(map[string]string{
		nacos.MetadataBeatInterval:  millis(s.times.beat),
		nacos.MetadataBeatTimeout:   millis(s.times.unhealthy),
		nacos.MetadataDeleteTimeout: millis(s.times.removals),
	})
	if _, err := s.third.RegisterInstance(ctx, s.service, s.c); err != nil {
		return err
	}
	registered := time.Now()
	_, err := s.await(ctx, func(e nacos.Event) bool {
		_, ok := find(e.Added, s.c)
		return ok
	})
	if err != nil {
		return err
	}
	s.say("a third provider, %s, was seen %d ms after it registered", s.c, time.Since(registered).Milliseconds())
	return nil
}

func (s *story) update(ctx context.Context) error {
	s.a.Weight = 5
	if err := s.regA.Update(ctx, s.a); err != nil {
		return err
	}
	updated := time.Now()
	e, err := s.await(ctx, func(e nacos.Event) bool {
		in, ok := find(e.Modified, s.a)
		return ok && in.Weight == s.a.Weight
	})
	if err != nil {
		return err
	}
	in, _ := find(e.Modified, s.a)
	s.say("%s was updated and seen %d ms later", in, time.Since(updated).Milliseconds())
	return nil
}

// unhealthy ends the third client as a crash would: Close does not deregister.
func (s *story) unhealthy(ctx context.Context) error {
	if err := s.third.Close(); err != nil {
		return err
	}
	s.say("%s stops beating and does not deregister", s.c.Addr())
	e, err := s.await(ctx, func(e nacos.Event) bool {
		in, ok := find(e.Modified, s.c)
		return ok && !in.Healthy
	})
	if err != nil {
		return err
	}
	in, _ := find(e.Modified, s.c)
	s.say("it is seen: %s", in)
	return nil
}

func (s *story) removed(ctx context.Context) error {
	e, err := s.await(ctx, func(e nacos.Event) bool {
		_, ok := find(e.Removed, s.c)
		return ok
	})
	if err != nil {
		return err
	}
	s.say("it is removed; %d instances are left", len(e.Instances))
	return nil
}

// shutdown asks the server itself for what is left: the next poll may be 10 s away.
func (s *story) shutdown(ctx context.Context) error {
	if err := s.providers.Shutdown(ctx); err != nil {
		return err
	}
	again := time.NewTicker(200 * time.Millisecond) // lists of a real server lag half a second behind
	defer again.Stop()
	for {
		left, err := s.consumer.GetAllInstances(ctx, s.service, nacos.NoSubscribe())
		if err != nil {
			return err
		}
		if len(left) == 0 {
			s.say("Shutdown deregistered the others: the server lists none")
			return s.consumer.Shutdown(ctx)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("the server still lists %v", left)
		}
	}
}

// nothingLeft waits until no more goroutines run than before; those that ended just now need a moment.
func nothingLeft(out io.Writer, before int) error {
	deadline := time.Now().Add(2 * time.Second)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			stacks := make([]byte, 64<<10)
			stacks = stacks[:runtime.Stack(stacks, true)]
			return fmt.Errorf("did not happen: nothing is left running: %d goroutines instead of %d\n%s", runtime.NumGoroutine(), before, stacks)
		}
		<-look.C
	}
	fmt.Fprintln(out, "         everything is closed; no goroutine is left")
	return nil
}
