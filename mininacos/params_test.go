package mininacos

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/nacos-naming/nacos/internal/wire"
)

// Answers of a real 2.3.2 beyond the captures: what it trims, takes and refuses, in its order.
func TestS1_ParametersAsTheRealServer(t *testing.T) {
	long := strings.Repeat("x", 1030)
	illegal := func(param string) string {
		return "400  Param '" + param + "' is illegal, illegal characters should not appear in the param.\r\n"
	}
	tooLong := func(param, most string) string {
		return "400  Param '" + param + "' is illegal, the param length should not exceed " + most + ".\r\n"
	}
	page := func(status, msg string) string {
		name := map[string]string{"400": "Bad Request", "500": "Internal Server Error"}[status]
		return status + ` application/json {"timestamp":"T","status":` + status + `,"error":"` + name + `","message":"` + msg + `","path":"/nacos/v1/ns/instance"}`
	}
	filter := func(msg string) string {
		return page("400", "Service name filter error,caused: Param 'serviceName' is illegal, "+msg+";")
	}
	metadata := func(text string) string {
		return page("500", "Server failed, caused: ErrCode:400, ErrMsg:metadata format incorrect:"+text+";caused: metadata format incorrect:"+text+";")
	}
	const (
		ok       = "200 text/plain;charset=UTF-8 ok"
		caused   = "400 text/plain;charset=UTF-8 caused: "
		caused5  = "500 text/plain;charset=UTF-8 caused: "
		badPort  = "400  Param 'port' is illegal, the value should be between 0 and 65535.\r\n"
		weights  = caused5 + "instance format invalid: The weights range from 0.0 to 10000.0;"
		interval = caused5 + "Instance &#39;heart beat interval&#39; must less than &#39;heart beat timeout&#39; and &#39;ip delete timeout&#39;.;"
	)
	for _, tc := range []struct {
		params string // name=value|..., over serviceName=e.order|ip=10.0.0.1|port=80; name! removes one
		want   string
	}{
		{"serviceName!|ip!|port!", caused + "Param 'serviceName' is required.;"},
		{"ip!|port!", caused + "Param 'ip' is required.;"},
		{"serviceName=G1@@|port=abc", filter("it should be format as 'groupName@@serviceName'")},
		{"serviceName=G1@@|metadata={bad", page("500", "Cannot call sendError() after the response has been committed")},
		{"serviceName=@@x", filter("groupName can't be empty")},
		{"serviceName=@@", filter("it should be format as 'groupName@@serviceName'")},
		{"serviceName=@x", illegal("serviceName")},
		{"serviceName=G@@@x", illegal("serviceName")},
		{"serviceName=a b", illegal("serviceName")},
		{"serviceName=a!b$c", ok},
		{"serviceName= e.trim ", ok},
		{"serviceName=   ", caused + "Param 'serviceName' is illegal, it should be format as 'groupName@@serviceName';"},
		{"ip= ", ok},
		{"ip= 10.0.0.1 ", illegal("ip")},
		{"ip=a\tb", illegal("ip")},
		{"ip=\u4e2d", illegal("ip")},
		{"port= 80 ", badPort},
		{"port=0x50", badPort},
		{"port=80.0", badPort},
		{"port=+80", ok},
		{"port= ", caused + `For input string: "";`},
		{"serviceName!|weight=abc", caused + "Param 'serviceName' is required.;"},
		{"ip!|weight=abc", caused + "Param 'ip' is required.;"},
		{"port!|weight=-1", caused + "Param 'port' is required.;"},
		{"weight=abc|metadata={bad", metadata("{bad")},
		{"weight= 3 ", ok},
		{"weight=", ok},
		{"weight=1e2", ok},
		{"weight=0x1p3", ok},
		{"weight=3f", ok},
		{"weight=3ff", caused + `For input string: "3ff";`},
		{"weight=1_0", caused + `For input string: "1_0";`},
		{"weight=Infinity", weights},
		{"weight=1<2'&\"", caused + `For input string: "1<2'&"";`},
		{"clusterName= ", ok},
		{"clusterName=a_b", caused5 + "Instance &#39;clusterName&#39; should be characters with only 0-9a-zA-Z-. (current: a_b);"},
		{"clusterName=a.b", illegal("cluster")},
		{"cluster=a.b", illegal("cluster")},
		{"clusterName=" + long[:65], tooLong("cluster", "64")},
		{"groupName=g b", illegal("group")},
		{"groupName=" + long[:129], tooLong("group", "128")},
		{"serviceName=g b@@x", illegal("group")},
		{"serviceName=" + long[:513], tooLong("serviceName", "512")},
		{"ip=" + long[:129], tooLong("ip", "128")},
		{"namespaceId=" + long[:65], tooLong("namespaceId/tenant", "64")},
		{"namespaceId=n.n", illegal("namespaceId/tenant")},
		{"namespaceId= ", ok},
		{"metadata=m=" + long, tooLong("Metadata", "1024")},
		{"metadata=m=" + long + "|weight=-1", tooLong("Metadata", "1024")},
		{"metadata=m=1|weight=-1", weights},
		{`metadata={"a":1,"b":true,"d":1.50}`, ok},
		{`metadata=a=1,b`, metadata("a=1,b")},
		{`metadata=a=1=2,b=3`, metadata("a=1=2,b=3")},
		{`metadata=[1]`, metadata("[1]")},
		{`metadata= { "a":"b" } `, ok},
		{`metadata= `, ok},
		{`metadata={"preserved.heart.beat.interval":"x","preserved.heart.beat.timeout":"3000"}`, interval},
		{`metadata={"preserved.heart.beat.interval":"3000","preserved.heart.beat.timeout":"3000"}`, ok},
		{`metadata={"preserved.heart.beat.interval":"3000","preserved.ip.delete.timeout":"2000"}`, interval},
		{"namespaceId=n.n|serviceName=a b|groupName=g b|clusterName=a.b|ip=a b|port=x", illegal("namespaceId/tenant")},
		{"serviceName=a b|groupName=g b|clusterName=a.b|ip=a b|port=x", illegal("serviceName")},
		{"groupName=g b|clusterName=a.b|ip=a b|port=x", illegal("group")},
		{"clusterName=a.b|ip=a b|port=x", illegal("cluster")},
		{"ip=a b|port=x|metadata=m=" + long, illegal("ip")},
		{"port=x|metadata=m=" + long, badPort},
		{"weight=NaN", ok},
		{"weight=nan", caused + `For input string: "nan";`},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := onMemnet(t)
			kv := map[string]string{"serviceName": "e.order", "ip": "10.0.0.1", "port": "80"}
			for part := range strings.SplitSeq(tc.params, "|") {
				if name, ok := strings.CutSuffix(part, "!"); ok && !strings.Contains(part, "=") {
					delete(kv, name)
					continue
				}
				name, value, _ := strings.Cut(part, "=")
				kv[name] = value
			}
			var params []string
			for k, v := range kv {
				params = append(params, k, v)
			}
			a := c.do("POST", wire.PathInstance, params...)
			body := times.ReplaceAllString(a.body, `"timestamp":"T"`)
			require.Equal(t, tc.want, strings.Join([]string{strconv.Itoa(a.status), a.contentType, body}, " "), tc.params)
		})
	}
}

// The list's and the pages' parameters, as a real 2.3.2 took them.
func TestS1_ListParameters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := onMemnet(t)
		for _, s := range []string{"a", "b", "c"} {
			c.register(s, "10.1.1.1")
		}
		for _, tc := range []struct {
			path   string
			params []string
			status int
			body   string // part of it
		}{
			{wire.PathInstanceList, []string{"serviceName", "a", "udpPort", "99999999999"}, 400, `For input string: "99999999999"`},
			{wire.PathInstanceList, []string{"serviceName", "a", "udpPort", " 5 "}, 200, `"10.1.1.1"`},
			{wire.PathInstanceList, []string{"serviceName", "a", "udpPort", "70000", "clientIP", "a b", "ip", "a b", "port", "b", "metadata", "{"}, 200, `"10.1.1.1"`},
			{wire.PathInstanceList, []string{"serviceName", "a", "clusters", "x, y"}, 400, "Param 'cluster' is illegal"},
			{wire.PathInstanceList, []string{"serviceName", "a", "clusters", "x,,DEFAULT"}, 200, `"10.1.1.1"`},
			{wire.PathInstanceList, []string{"serviceName", "a", "clusters", ","}, 200, `"clusters":",","cacheMillis":10000,"hosts":[]`},
			{wire.PathInstanceList, []string{"serviceName", "a", "healthyOnly", " TRUE "}, 200, `"10.1.1.1"`},
			{wire.PathInstanceList, []string{"serviceName", "g@@a", "groupName", "other"}, 200, `"name":"g@@a","groupName":"g"`},
			{wire.PathInstanceList, []string{"serviceName", "a;b"}, 200, `"DEFAULT_GROUP@@a;b"`},
			{wire.PathServiceList, []string{"pageNo", "1"}, 400, "Param 'pageSize' is required."},
			{wire.PathServiceList, []string{"pageNo", "", "pageSize", "5"}, 400, "Param 'pageNo' is required."},
			{wire.PathServiceList, []string{"pageNo", "1", "pageSize", "x"}, 200, `{"count":3,"doms":[]}`},
			{wire.PathServiceList, []string{"pageNo", "-1", "pageSize", "2"}, 200, `{"count":3,"doms":["a","b"]}`},
			{wire.PathServiceList, []string{"pageNo", "2", "pageSize", "2"}, 200, `{"count":3,"doms":["c"]}`},
			{wire.PathServiceList, []string{"pageNo", "3", "pageSize", "2"}, 200, `{"count":3,"doms":[]}`},
			{wire.PathServiceList, []string{"pageNo", "2147483647", "pageSize", "2147483647"}, 200, `{"count":3,"doms":[]}`},
			{wire.PathServiceList, []string{"pageNo", "1", "pageSize", "-5"}, 400, "caused: fromIndex(0) > toIndex(-5);"},
			{wire.PathServiceList, []string{"pageNo", "1", "pageSize", "5", "groupName", "*"}, 400, "Param 'group' is illegal"},
			{wire.PathMetrics, []string{"onlyStatus", "TRUE"}, 200, `{"status":"UP"}`},
			{wire.PathMetrics, []string{"onlyStatus", "x"}, 200, `"instanceCount":3,`},
			{wire.PathMetrics, []string{"ip", "a b"}, 400, "Param 'ip' is illegal"},
			{wire.PathInstanceList + "/", []string{"serviceName", "a"}, 200, `"10.1.1.1"`},
			{"/v1/ns/", nil, 501, "no such api:GET:/nacos/v1/ns/"},
			{"/v1/nsx", nil, 404, "No message available"},
			{"/v2/ns/instance/list", nil, 404, "No message available"},
		} {
			a := c.do("GET", tc.path, tc.params...)
			require.Equal(t, tc.status, a.status, "%v: %s", tc, a.body)
			require.Contains(t, a.body, tc.body, tc)
		}
	})
}
