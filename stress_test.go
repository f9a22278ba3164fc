package nacos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/mininacos"
)

// stress is users who want things at random while servers fail at random.
type stress struct {
	*world
	provider *NamingService

	mu     sync.Mutex
	rnd    *rand.Rand
	wanted map[string]Instance // service and address to what the servers should have in the end
}

var stressServices = []string{"orders", "stock"}

func (s *stress) intn(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rnd.IntN(n)
}

// upTo waits for a random time.
func (s *stress) upTo(d time.Duration) { time.Sleep(time.Duration(s.intn(int(d)))) }

// user registers, updates and deregisters one instance, at random, for ever. What a call did when it
// failed follows from what it promises: nothing.
func (s *stress) user(ctx context.Context, service string, port int) {
	var reg *Registration
	key := fmt.Sprintf("%s 10.9.0.1:%d", service, port)
	want := func(in Instance, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil {
			s.wanted[key] = in
		}
	}
	for ctx.Err() == nil {
		call, cancel := context.WithTimeout(ctx, time.Duration(1+s.intn(int(4*time.Second))))
		in := NewInstance("10.9.0.1", port)
		in.Weight = float64(1 + s.intn(5))
		in.Metadata = NewMetadata(map[string]string{"n": strconv.Itoa(s.intn(1000))})
		switch s.intn(6) {
		case 0, 1:
			got, err := s.provider.RegisterInstance(call, service, in)
			want(in, err)
			if err == nil {
				reg = got
			}
		case 2:
			got, err := s.provider.RegisterInstance(call, service, in, KeepTrying())
			want(in, err)
			if err == nil {
				reg = got
			}
		case 3:
			if reg != nil {
				want(in, reg.Update(call, in))
			}
		default:
			// Whether it succeeds or not, the instance is to go: heartbeats end. Only if the context ended before its
			// turn came everything stays as it was.
			err := s.provider.DeregisterInstance(call, service, in)
			if reg == nil || err == nil || reg.State() == StateLeaving || reg.State() == StateGone {
				s.mu.Lock()
				delete(s.wanted, key)
				s.mu.Unlock()
			}
		}
		cancel()
		if s.intn(3) > 0 {
			s.upTo(20 * time.Second)
		}
	}
}

// watcher subscribes and unsubscribes at random, for ever.
func (s *stress) watcher(ctx context.Context, ns *NamingService) {
	for ctx.Err() == nil {
		sub, err := ns.Subscribe(stressServices[s.intn(2)], func(Event) { s.upTo(time.Second) })
		require.NoError(s, err)
		s.upTo(30 * time.Second)
		sub.Unsubscribe()
		<-sub.Done()
	}
}

// fate stops, restarts, cuts off and confuses servers, for ever; heal ends it all.
func (s *stress) fate(ctx context.Context) {
	for ctx.Err() == nil {
		i := s.intn(len(s.servers))
		switch s.intn(6) {
		case 0, 1:
			s.servers[i].Stop()
		case 2, 3:
			memory := []mininacos.Memory{mininacos.KeepState, mininacos.LoseState}[s.intn(2)]
			require.NoError(s, s.servers[i].Restart(memory))
		case 4:
			s.net.BlackHole(serverIP(i), s.intn(2) == 0)
		case 5:
			s.net.CutConns(serverIP(i), "10.1.0.1") // the provider
		}
		s.upTo(15 * time.Second)
	}
}

func (s *stress) heal() {
	for i, server := range s.servers {
		s.net.BlackHole(serverIP(i), false)
		require.NoError(s, server.Restart(mininacos.KeepState))
	}
}

// confuse makes some requests fail in some way.
func (s *stress) confuse(r *mininacos.Request) mininacos.Fault {
	if s.intn(100) >= 15 {
		return mininacos.Fault{}
	}
	delay := time.Duration(s.intn(int(5 * time.Second)))
	return []mininacos.Fault{
		{Delay: delay}, {DelayReply: delay}, {Hang: true}, {HangReply: true}, {DropReply: true}, {Refuse: true}, {CutBody: true},
		{Garbage: true}, {Status: 500, Body: "caused: no leader;"}, {Status: 503}, {DelayReply: delay, Status: 502},
	}[s.intn(11)]
}

// listing is what a list has to say, in order.
func listing(list []Instance) []string {
	lines := make([]string, len(list))
	for i, in := range list {
		lines[i] = fmt.Sprintf("%s weight=%g %s healthy=%t", in.Addr(), in.Weight, in.Metadata, in.Healthy)
	}
	slices.Sort(lines)
	return lines
}

// Whatever went wrong: a minute after it is over, servers have what was wanted last, and subscribers know it.
func TestStressEndsAsWanted(t *testing.T) {
	seeds := 8
	if n, err := strconv.Atoi(os.Getenv("NACOS_STRESS")); err == nil {
		seeds = n
	}
	for seed := range seeds {
		inWorld(t, 3, func(w *world) {
			s := &stress{world: w, rnd: rand.New(rand.NewPCG(uint64(seed), 5)), wanted: make(map[string]Instance)}
			s.provider = w.client(WithRequestTimeout(2 * time.Second))
			consumer := w.client()
			last := make(map[string]*record)
			for _, service := range stressServices {
				last[service] = new(record)
				_, err := consumer.Subscribe(service, last[service].on)
				require.NoError(w, err)
			}
			ctx, cancel := context.WithTimeout(w.ctx, 5*time.Minute)
			defer cancel()
			sane := w.cluster.Intercept(s.confuse)
			var wg sync.WaitGroup
			for port := 1; port <= 4; port++ {
				for _, service := range stressServices {
					wg.Go(func() { s.user(ctx, service, port) })
				}
			}
			wg.Go(func() { s.watcher(ctx, consumer) })
			wg.Go(func() { s.fate(ctx) })
			wg.Wait()
			sane()
			s.heal()
			time.Sleep(2 * time.Minute) // longer polls than a minute are due when many before failed
			for _, service := range stressServices {
				var want []Instance
				for key, in := range s.wanted {
					if key == fmt.Sprintf("%s %s", service, in.Addr()) {
						want = append(want, in)
					}
				}
				have, err := consumer.GetAllInstances(w.ctx, service, NoSubscribe())
				require.NoError(w, err)
				require.Equal(w, listing(want), listing(have), "seed %d, %s at the servers", seed, service)
				events := last[service].all()
				require.Equal(w, listing(want), listing(events[len(events)-1].Instances), "seed %d, %s at the subscriber", seed, service)
			}
			require.NoError(w, s.provider.Shutdown(w.ctx))
			for _, service := range stressServices {
				require.Empty(w, w.server().Instances("", "", service), "seed %d", seed)
			}
		})
	}
}
