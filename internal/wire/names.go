package wire

import "strings"

// Paths of the v1 naming API, below the context path of a server ("/nacos" by default).
const (
	PathInstance     = "/v1/ns/instance"         // POST registers, DELETE deregisters, PUT updates
	PathInstanceList = "/v1/ns/instance/list"    // GET: the instances of a service, and the UDP subscription
	PathBeat         = "/v1/ns/instance/beat"    // PUT: heartbeat of one instance
	PathServiceList  = "/v1/ns/service/list"     // GET: names of services, by page
	PathMetrics      = "/v1/ns/operator/metrics" // GET: status of a server
)

// Names of request parameters, in a query or a form body.
const (
	ParamNamespaceID = "namespaceId" // empty or absent: DefaultNamespace
	ParamServiceName = "serviceName" // group@@service; without "@@" the server adds the group parameter's
	ParamGroupName   = "groupName"   // not looked at when serviceName has a group
	ParamClusterName = "clusterName" // cluster of one instance
	ParamIP          = "ip"
	ParamPort        = "port"
	ParamWeight      = "weight"
	ParamEnable      = "enable"  // register; the server looks at "enabled" first
	ParamEnabled     = "enabled" // update
	ParamHealthy     = "healthy"
	ParamEphemeral   = "ephemeral" // absent: true
	ParamMetadata    = "metadata"  // see ParseMetadata
	ParamClusters    = "clusters"  // of a list, joined by commas; empty: all
	ParamHealthyOnly = "healthyOnly"
	ParamUDPPort     = "udpPort"  // where pushes go to; 0 or absent: no pushes
	ParamClientIP    = "clientIP" // host of udpPort; the server does not look at the address of the connection
	ParamApp         = "app"
	ParamBeat        = "beat"     // see Beat; absent in a light beat
	ParamPageNo      = "pageNo"   // from 1
	ParamPageSize    = "pageSize" // names a page
)

// What the server takes for names that a request leaves out.
const (
	DefaultGroup     = "DEFAULT_GROUP"
	DefaultCluster   = "DEFAULT"
	DefaultNamespace = "public"
)

// GroupSeparator stands between group and service in a grouped name.
const GroupSeparator = "@@"

// Codes of beat replies.
const (
	CodeOK               = 10200
	CodeResourceNotFound = 20404 // the server does not know the instance: register it again
)

// Metadata keys by which an instance sets its own times, in milliseconds, decimal digits only.
const (
	MetaBeatInterval  = "preserved.heart.beat.interval" // between beats; absent: 5000
	MetaBeatTimeout   = "preserved.heart.beat.timeout"  // without a beat until it is unhealthy; absent: 15000
	MetaDeleteTimeout = "preserved.ip.delete.timeout"   // without a beat until it is removed; absent: 30000
)

// GroupedName returns group@@service, the name of a service in requests and replies. It does not check or complete its
// arguments: an empty group gives a name that servers refuse.
func GroupedName(group, service string) string {
	return group + GroupSeparator + service
}

// SplitGroupedName undoes GroupedName. It cuts at the first separator, so that a service name may contain further ones;
// ok is false when there is none or either side is empty, and group and service are then empty too.
func SplitGroupedName(name string) (group, service string, ok bool) {
	group, service, ok = strings.Cut(name, GroupSeparator)
	if !ok || group == "" || service == "" {
		return "", "", false
	}
	return group, service, true
}
