package mininacos_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/nacos-naming/nacos/mininacos"
)

// A server in ten lines: whatever is under test talks HTTP to it, the test looks at its state.
func ExampleRun() {
	srv, err := mininacos.Run() // in a test: srv := mininacos.RunT(t)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()

	resp, err := http.Post(srv.URL()+"/v1/ns/instance?serviceName=orders&ip=10.0.0.5&port=8080", "", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)

	fmt.Println(resp.StatusCode, string(body))
	fmt.Println(srv.ExpectInstances("", "", "orders", "10.0.0.5:8080"))
	fmt.Println(srv.ExpectInstances("", "", "orders"))
	// Output:
	// 200 ok
	// <nil>
	// mininacos: service DEFAULT_GROUP@@orders: want none, have 10.0.0.5:8080
}

// A fault for one API, until removed.
func ExampleServer_Intercept() {
	srv, err := mininacos.Run()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	remove := srv.Intercept(func(r *mininacos.Request) mininacos.Fault {
		if r.API == mininacos.APIList && strings.HasSuffix(r.Param("serviceName"), "orders") {
			return mininacos.Fault{Status: http.StatusServiceUnavailable, Body: "server is DOWN now"}
		}
		return mininacos.Fault{}
	})
	get := func() {
		resp, err := http.Get(srv.URL() + "/v1/ns/instance/list?serviceName=orders")
		if err != nil {
			fmt.Println(err)
			return
		}
		defer resp.Body.Close()
		fmt.Println(resp.StatusCode)
	}
	get()
	remove()
	get()
	fmt.Println(srv.Requests()[mininacos.APIList], "list requests")
	// Output:
	// 503
	// 200
	// 2 list requests
}
