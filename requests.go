package nacos

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/nacos-naming/nacos/internal/wire"
)

// This file holds what namingProxy asks servers: one function an API, each builds the parameters and reads
// the answer. Every parameter goes into the query, also of POST and PUT, as Java's client does it (servers do
// not read the body of a DELETE), but for the JSON of a full heartbeat.

// instance sends one of the requests about an instance whose answer is the text ok. within, unless 0, is
// what each try has at most: such requests are made by the workers of the heartbeats and share their limit.
func (p *namingProxy) instance(ctx context.Context, api, method, group, service string, in Instance, query string, within time.Duration) error {
	r := &request{
		api: api, subject: subject(group, service, in), method: method, path: wire.PathInstance,
		query: query, timeout: p.cfg.requestTimeout, decode: wire.DecodeOK,
	}
	if within > 0 {
		r.timeout, r.limit = min(within, r.timeout), p.beatLimit()
	}
	return p.do(ctx, r)
}

// beatLimit is how many of the heartbeats' workers one server of several may hold (B7).
func (p *namingProxy) beatLimit() int { return (p.cfg.beatWorkers + 1) / 2 }

func subject(group, service string, in Instance) string {
	return groupedName(group, service) + " " + in.Addr()
}

func (p *namingProxy) register(ctx context.Context, group, service string, in Instance, within time.Duration) error {
	v := p.instanceParams(group, service, in)
	v.Set(wire.ParamEnable, strconv.FormatBool(in.Enabled))
	v.Set(wire.ParamHealthy, strconv.FormatBool(in.Healthy))
	return p.instance(ctx, "register", "POST", group, service, in, v.Encode(), within)
}

func (p *namingProxy) update(ctx context.Context, group, service string, in Instance, within time.Duration) error {
	v := p.instanceParams(group, service, in)
	v.Set(wire.ParamEnabled, strconv.FormatBool(in.Enabled))
	return p.instance(ctx, "update", "PUT", group, service, in, v.Encode(), within)
}

func (p *namingProxy) deregister(ctx context.Context, group, service string, in Instance) error {
	v := p.addressParams(group, service, in)
	v.Set(wire.ParamGroupName, group)
	v.Set(wire.ParamEphemeral, strconv.FormatBool(in.Ephemeral))
	return p.instance(ctx, "deregister", "DELETE", group, service, in, v.Encode(), 0)
}

// addressParams names an instance.
func (p *namingProxy) addressParams(group, service string, in Instance) url.Values {
	return url.Values{
		wire.ParamNamespaceID: {p.cfg.namespace},
		wire.ParamServiceName: {groupedName(group, service)},
		wire.ParamClusterName: {in.Cluster},
		wire.ParamIP:          {in.IP},
		wire.ParamPort:        {strconv.Itoa(in.Port)},
	}
}

// instanceParams names an instance and tells what it is like.
func (p *namingProxy) instanceParams(group, service string, in Instance) url.Values {
	v := p.addressParams(group, service, in)
	v.Set(wire.ParamGroupName, group)
	v.Set(wire.ParamWeight, strconv.FormatFloat(in.Weight, 'f', -1, 64))
	v.Set(wire.ParamEphemeral, strconv.FormatBool(in.Ephemeral))
	v.Set(wire.ParamMetadata, in.Metadata.String())
	return v
}

// beat sends a heartbeat; a light one names the instance only. Each try has a quarter of the period, at
// most 3 s (B6).
func (p *namingProxy) beat(ctx context.Context, group, service string, in Instance, light bool, period time.Duration) (reply wire.BeatReply, err error) {
	r := &request{
		api: "beat", subject: subject(group, service, in), method: "PUT", path: wire.PathBeat,
		query:   p.addressParams(group, service, in).Encode(),
		limit:   p.beatLimit(),
		timeout: min(3*time.Second, period/4, p.cfg.requestTimeout),
		decode: func(body []byte) (err error) {
			reply, err = wire.DecodeBeatReply(body)
			return err
		},
	}
	if !light {
		r.form = wire.ParamBeat + "=" + url.QueryEscape(string(wire.AppendBeat(nil, &wire.Beat{
			IP: in.IP, Port: in.Port, Weight: in.Weight, Service: groupedName(group, service), Cluster: in.Cluster,
			Metadata: in.Metadata.pairs, Period: period.Milliseconds(), Ephemeral: true,
		})))
	}
	err = p.do(ctx, r)
	return reply, err
}

// list asks for the instances of a service. When the answer is the one that known stands for but for its
// time, it is not decoded: info is nil and refTime the new time.
func (p *namingProxy) list(ctx context.Context, k serviceKey, known wire.Fingerprint) (reply listReply, err error) {
	v := url.Values{
		wire.ParamNamespaceID: {p.cfg.namespace},
		wire.ParamServiceName: {groupedName(k.group, k.name)},
		wire.ParamClusters:    {k.clusters},
		wire.ParamUDPPort:     {"0"},
		wire.ParamHealthyOnly: {"false"},
	}
	if p.cfg.appName != "" {
		v.Set(wire.ParamApp, p.cfg.appName)
	}
	err = p.do(ctx, &request{
		api: "list", subject: k.String(), method: "GET", path: wire.PathInstanceList, query: v.Encode(),
		sticky: true, timeout: p.cfg.requestTimeout,
		decode: func(body []byte) (err error) {
			reply, err = readList(k, known, body)
			return err
		},
	})
	return reply, err
}

func readList(k serviceKey, known wire.Fingerprint, body []byte) (listReply, error) {
	if refTime, same := known.Match(body); same {
		return listReply{refTime: refTime, print: known}, nil
	}
	info, print, err := wire.DecodeServiceInfo(body)
	if err != nil {
		return listReply{}, err
	}
	if !info.HasHosts {
		return listReply{}, &wire.DecodeError{What: "instance list", Kind: wire.KindMissingField, Field: "hosts", Offset: len(body)}
	}
	if bare := info.Name == k.name && (info.Group == k.group || info.Group == ""); !bare && info.Name != groupedName(k.group, k.name) {
		return listReply{}, &wire.DecodeError{What: "list of another service", Kind: wire.KindUnexpected, Field: "name", Offset: len(body)}
	}
	return listReply{info: info, refTime: info.LastRefTime, print: print}, nil
}

// services asks for one page of the services of a group.
func (p *namingProxy) services(ctx context.Context, group string, page, size int) (out wire.ServiceList, err error) {
	err = p.do(ctx, &request{
		api: "services", subject: fmt.Sprintf("%s page %d", group, page), method: "GET", path: wire.PathServiceList,
		query: url.Values{
			wire.ParamNamespaceID: {p.cfg.namespace},
			wire.ParamGroupName:   {group},
			wire.ParamPageNo:      {strconv.Itoa(page)},
			wire.ParamPageSize:    {strconv.Itoa(size)},
		}.Encode(),
		timeout: p.cfg.requestTimeout,
		decode: func(body []byte) (err error) {
			out, err = wire.DecodeServiceList(body)
			return err
		},
	})
	return out, err
}

// status asks a server how it is.
func (p *namingProxy) status(ctx context.Context) (status string, err error) {
	err = p.do(ctx, &request{
		api: "status", method: "GET", path: wire.PathMetrics,
		query:   url.Values{wire.ParamNamespaceID: {p.cfg.namespace}}.Encode(),
		timeout: p.cfg.requestTimeout,
		decode: func(body []byte) (err error) {
			status, err = wire.DecodeServerStatus(body)
			return err
		},
	})
	return status, err
}
