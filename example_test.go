package nacos_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sort"
	"time"

	"github.com/nacos-naming/nacos"
	"github.com/nacos-naming/nacos/mininacos"
)

// setUp starts a server and a client for an example. A program passes the addresses of its Nacos servers to
// WithServers instead.
func setUp() (ns *nacos.NamingService, srv *mininacos.Server, end func()) {
	srv, err := mininacos.Run(mininacos.WithCacheMillis(time.Second))
	if err != nil {
		log.Fatal(err)
	}
	ns, err = nacos.NewNamingService(nacos.WithServers(srv.Addr()))
	if err != nil {
		log.Fatal(err)
	}
	return ns, srv, func() {
		if err := ns.Shutdown(context.Background()); err != nil {
			log.Fatal(err)
		}
		srv.Close()
	}
}

// provide registers instances of a service at these ports, beside the client of the example.
func provide(srv *mininacos.Server, service string, ports ...int) {
	for _, port := range ports {
		if err := srv.Register("", "", service, mininacos.NewInstance("10.0.0.5", port)); err != nil {
			log.Fatal(err)
		}
	}
}

func ExampleNewNamingService() {
	ns, err := nacos.NewNamingService(
		nacos.WithServers("10.0.0.1:8848", "10.0.0.2:8848", "10.0.0.3:8848"),
		nacos.WithNamespace("prod"),
		nacos.WithRequestTimeout(3*time.Second),
	)
	fmt.Println(err)
	fmt.Println(ns.Close())

	_, err = nacos.NewNamingService(nacos.WithServers("ftp://10.0.0.1"))
	fmt.Println(err)
	// Output:
	// <nil>
	// <nil>
	// nacos: invalid option WithServers "ftp://10.0.0.1": has the scheme "ftp"; must be host, host:port, [v6]:port or http(s)://host[:port][/context]
}

func ExampleNamingService_RegisterInstance() {
	ns, srv, end := setUp()
	defer end()
	in := nacos.NewInstance("10.0.0.5", 8080)
	in.Metadata = nacos.NewMetadata(map[string]string{"version": "1.2"})
	reg, err := ns.RegisterInstance(context.Background(), "orders", in, nacos.Group("pay"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reg.State(), reg.Instance(), reg.Instance().Metadata)
	fmt.Println(srv.ExpectInstances("", "pay", "orders", "10.0.0.5:8080"))
	// Output:
	// live 10.0.0.5:8080 {"version":"1.2"}
	// <nil>
}

// With KeepTrying a program starts while Nacos is down and is registered as soon as it is up.
func ExampleKeepTrying() {
	ns, srv, end := setUp()
	defer end()
	srv.Stop()
	reg, err := ns.RegisterInstance(context.Background(), "orders", nacos.NewInstance("10.0.0.5", 8080), nacos.KeepTrying())
	fmt.Println(reg.State(), err)

	if err := srv.Restart(mininacos.KeepState); err != nil {
		log.Fatal(err)
	}
	for reg.State() != nacos.StateLive { // a readiness probe would look each second or so
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println(reg.State(), reg.Err())
	// Output:
	// registering <nil>
	// live <nil>
}

func ExampleRegistration_Update() {
	ns, srv, end := setUp()
	defer end()
	reg, err := ns.RegisterInstance(context.Background(), "orders", nacos.NewInstance("10.0.0.5", 8080))
	if err != nil {
		log.Fatal(err)
	}
	in := reg.Instance()
	in.Weight = 5
	fmt.Println(reg.Update(context.Background(), in))
	fmt.Println(srv.Instances("", "", "orders")[0].Weight)
	// Output:
	// <nil>
	// 5
}

func ExampleRegistration_Deregister() {
	ns, srv, end := setUp()
	defer end()
	reg, err := ns.RegisterInstance(context.Background(), "orders", nacos.NewInstance("10.0.0.5", 8080))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reg.Deregister(context.Background()), reg.State())
	fmt.Println(len(srv.Instances("", "", "orders")))
	// Output:
	// <nil> gone
	// 0
}

func ExampleNamingService_DeregisterInstance() {
	ns, srv, end := setUp()
	defer end()
	provide(srv, "orders", 8080) // by somebody else
	err := ns.DeregisterInstance(context.Background(), "orders", nacos.NewInstance("10.0.0.5", 8080))
	fmt.Println(err, len(srv.Instances("", "", "orders")))
	// Output: <nil> 0
}

func ExampleNamingService_UpdateInstance() {
	ns, srv, end := setUp()
	defer end()
	provide(srv, "orders", 8080)
	in := nacos.NewInstance("10.0.0.5", 8080)
	in.Enabled = false // takes it out of rotation: servers list no disabled instances
	fmt.Println(ns.UpdateInstance(context.Background(), "orders", in))
	all, err := ns.GetAllInstances(context.Background(), "orders")
	fmt.Println(all, err)
	// Output:
	// <nil>
	// [] <nil>
}

func ExampleNamingService_Registrations() {
	ns, _, end := setUp()
	defer end()
	for port := 8081; port <= 8082; port++ {
		if _, err := ns.RegisterInstance(context.Background(), "orders", nacos.NewInstance("10.0.0.5", port)); err != nil {
			log.Fatal(err)
		}
	}
	for _, reg := range ns.Registrations() {
		fmt.Println(reg.ServiceName().Service, reg.Instance(), reg.State(), reg.Err())
	}
	// Output:
	// orders 10.0.0.5:8081 live <nil>
	// orders 10.0.0.5:8082 live <nil>
}

func ExampleNamingService_SelectOneHealthyInstance() {
	ns, srv, end := setUp()
	defer end()
	provide(srv, "orders", 8080)
	one, err := ns.SelectOneHealthyInstance(context.Background(), "orders")
	fmt.Println(one.Addr(), err)

	_, err = ns.SelectOneHealthyInstance(context.Background(), "order")
	var none *nacos.NoInstanceError
	fmt.Println(errors.As(err, &none), err)
	// Output:
	// 10.0.0.5:8080 <nil>
	// true nacos: no instance of DEFAULT_GROUP@@order: the list is empty (from poll)
}

func ExampleNamingService_SelectInstances() {
	ns, srv, end := setUp()
	defer end()
	provide(srv, "orders", 8081, 8082)
	if err := srv.SetHealthy("", "", "orders", "10.0.0.5", 8082, false); err != nil {
		log.Fatal(err)
	}
	up, err := ns.SelectInstances(context.Background(), "orders")
	fmt.Println(up, err)
	down, err := ns.SelectInstances(context.Background(), "orders", nacos.Unhealthy())
	fmt.Println(down, err)
	// Output:
	// [10.0.0.5:8081] <nil>
	// [10.0.0.5:8082 unhealthy] <nil>
}

func ExampleNamingService_GetAllInstances() {
	ns, srv, end := setUp()
	defer end()
	provide(srv, "orders", 8081, 8082, 8083)
	odd := nacos.Where(func(in nacos.Instance) bool { return in.Port%2 == 1 })
	all, err := ns.GetAllInstances(context.Background(), "orders", odd)
	sort.Slice(all, func(i, k int) bool { return all[i].Port < all[k].Port })
	fmt.Println(all, err)
	// Output: [10.0.0.5:8081 10.0.0.5:8083] <nil>
}

func ExampleNamingService_GetService() {
	ns, srv, end := setUp()
	defer end()
	provide(srv, "orders", 8080)
	s, err := ns.GetService(context.Background(), "orders")
	fmt.Println(s.Group, s.Service, s.Instances, s.Source, s.Age < time.Minute, err)
	// Output: DEFAULT_GROUP orders [10.0.0.5:8080] poll true <nil>
}

func ExampleNamingService_Service() {
	ns, srv, end := setUp()
	defer end()
	provide(srv, "orders", 8080)
	orders := ns.Service("orders") // once
	for range 3 {                  // on every request
		one, err := orders.SelectOne(context.Background())
		fmt.Println(one.Addr(), err)
	}
	// Output:
	// 10.0.0.5:8080 <nil>
	// 10.0.0.5:8080 <nil>
	// 10.0.0.5:8080 <nil>
}

func ExampleNamingService_Subscribe() {
	ns, srv, end := setUp()
	defer end()
	provide(srv, "orders", 8081)
	events := make(chan nacos.Event)
	sub, err := ns.Subscribe("orders", func(e nacos.Event) { events <- e })
	if err != nil {
		log.Fatal(err)
	}
	first := <-events
	fmt.Println(first.Initial, first.Instances)
	provide(srv, "orders", 8082)
	second := <-events
	fmt.Println(second.Initial, second.Added, second.Removed, second.Modified)

	sub.Unsubscribe()
	<-sub.Done() // no callback runs any more
	// Output:
	// true [10.0.0.5:8081]
	// false [10.0.0.5:8082] [] []
}

func ExampleNamingService_Watch() {
	ns, srv, end := setUp()
	defer end()
	provide(srv, "orders", 8080)
	for e, err := range ns.Watch(context.Background(), "orders") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Initial, e.Instances)
		if len(e.Instances) == 0 {
			break // unsubscribes
		}
		srv.Deregister("", "", "orders", "10.0.0.5", 8080)
	}
	// Output:
	// true [10.0.0.5:8080]
	// false []
}

func ExampleNamingService_GetSubscribeServices() {
	ns, _, end := setUp()
	defer end()
	if _, err := ns.Subscribe("orders", func(nacos.Event) {}, nacos.Clusters("hz", "bj")); err != nil {
		log.Fatal(err)
	}
	fmt.Println(ns.GetSubscribeServices())
	// Output: [{DEFAULT_GROUP orders [bj hz]}]
}

func ExampleNamingService_GetServicesOfServer() {
	ns, srv, end := setUp()
	defer end()
	for i := range 5 {
		provide(srv, fmt.Sprintf("s%d", i), 8080)
	}
	page, err := ns.GetServicesOfServer(context.Background(), 2, 2)
	fmt.Println(page.Count, len(page.Names), err)
	// Output: 5 2 <nil>
}

func ExampleNamingService_Services() {
	ns, srv, end := setUp()
	defer end()
	provide(srv, "orders", 8080)
	for name, err := range ns.Services(context.Background()) {
		fmt.Println(name, err)
	}
	// Output: orders <nil>
}

func ExampleNamingService_GetServerStatus() {
	ns, _, end := setUp()
	defer end()
	fmt.Println(ns.GetServerStatus(context.Background()))
	// Output: UP <nil>
}

func ExampleNamingService_Stats() {
	ns, _, end := setUp()
	defer end()
	if _, err := ns.RegisterInstance(context.Background(), "orders", nacos.NewInstance("10.0.0.5", 8080)); err != nil {
		log.Fatal(err)
	}
	s := ns.Stats()
	fmt.Println(s.Registrations, s.Beats, s.Services, s.Servers[0].Failing)
	// Output: 1 1 0 false
}

// An application shuts the client down when it is told to end. See examples/service for a whole program.
func ExampleNamingService_Shutdown() {
	ns, srv, end := setUp()
	defer end()
	if _, err := ns.RegisterInstance(context.Background(), "orders", nacos.NewInstance("10.0.0.5", 8080)); err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println(ns.Shutdown(ctx))
	fmt.Println(len(srv.Instances("", "", "orders")))
	_, err := ns.SelectOneHealthyInstance(ctx, "orders")
	fmt.Println(errors.Is(err, nacos.ErrClosed))
	// Output:
	// <nil>
	// 0
	// true
}

func ExampleNamingService_Close() {
	ns, srv, end := setUp()
	defer end()
	if _, err := ns.RegisterInstance(context.Background(), "orders", nacos.NewInstance("10.0.0.5", 8080)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(ns.Close())
	fmt.Println(len(srv.Instances("", "", "orders"))) // until the server misses its heartbeats
	// Output:
	// <nil>
	// 1
}

func ExampleAPIError() {
	ns, err := nacos.NewNamingService(nacos.WithServers("127.0.0.1:1"), nacos.WithMaxTries(1)) // nobody is there
	if err != nil {
		log.Fatal(err)
	}
	defer ns.Close()
	_, err = ns.SelectOneHealthyInstance(context.Background(), "orders")
	var failure *nacos.APIError
	if errors.As(err, &failure) {
		fmt.Println(failure.API, failure.Servers, failure.Status, failure.Retryable)
	}
	// Output: list [127.0.0.1:1] 0 true
}
