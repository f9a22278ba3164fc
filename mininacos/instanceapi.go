package mininacos

import (
	"net/http"
	"strings"

	"github.com/nacos-naming/nacos/internal/wire"
)

var okReply = textReply(http.StatusOK, "ok")

func (s *Server) register(p params) (reply, error) {
	k, err := p.serviceKey()
	if err != nil {
		return reply{}, err
	}
	in, err := p.instance()
	if err != nil {
		return reply{}, err
	}
	if err := in.legal(); err != nil {
		return reply{}, err
	}
	return okReply, s.reg.register(k, in)
}

func (s *Server) deregister(p params) (reply, error) {
	k, err := p.serviceKey()
	if err != nil {
		return reply{}, err
	}
	in, err := p.instance()
	if err != nil {
		return reply{}, err
	}
	s.reg.deregister(k, in.endpoint, in.ephemeral)
	return okReply, nil
}

// update lays what the request says over the instance; what it does not say is laid over with its default (S6).
func (s *Server) update(p params) (reply, error) {
	k, err := p.serviceKey()
	if err != nil {
		return reply{}, err
	}
	in, err := p.instance()
	if err != nil {
		return reply{}, err
	}
	if err := in.legal(); err != nil {
		return reply{}, err
	}
	return okReply, s.reg.update(k, in.overlayKey(), overlay{weight: in.weight, enabled: in.enabled, metadata: in.metadata})
}

// list answers the instances of a service. udpPort and clientIP are where a client wants pushes; they are checked as the
// real server does, and nothing is pushed.
func (s *Server) list(p params) (reply, error) {
	k, err := p.serviceKey()
	if err != nil {
		return reply{}, err
	}
	if _, err := parseInt(p.optional(wire.ParamUDPPort, "0")); err != nil {
		return reply{}, err
	}
	key := listKey{
		clusters: p.optional(wire.ParamClusters, ""),
		healthy:  strings.EqualFold(p.optional(wire.ParamHealthyOnly, "false"), "true"),
	}
	return s.reg.list(k, key).reply(s.now()), nil
}

// beat keeps an instance alive; a full beat registers one the server does not know (S3).
func (s *Server) beat(p params, beat *wire.Beat) (reply, error) {
	at := overlayKey{cluster: p.optional(wire.ParamClusterName, wire.DefaultCluster)}
	var err error
	if at.ip, at.port = p.optional(wire.ParamIP, ""), 0; beat != nil {
		if strings.TrimSpace(beat.Cluster) != "" {
			at.cluster = beat.Cluster
		}
		at.ip, at.port = beat.IP, beat.Port
	} else if at.port, err = parseInt(p.optional(wire.ParamPort, "0")); err != nil {
		return reply{}, err
	}
	k, err := p.serviceKey()
	if err != nil {
		return reply{}, err
	}
	code := wire.CodeOK
	if !s.reg.beat(k, at.endpoint, beat == nil || beatIsFor(beat, k)) {
		if beat == nil {
			code = wire.CodeResourceNotFound
		} else if err := s.registerBeat(k, at, beat); err != nil {
			return reply{}, err
		}
	}
	return jsonReply(wire.AppendBeatReply(nil, wire.BeatReply{
		ClientBeatInterval: s.reg.beatInterval(k, at),
		Code:               code,
		LightBeatEnabled:   true,
	})), nil
}

// beatIsFor tells whether a full beat refreshes an instance of that service: the server goes by the name in the beat (a
// beat without one is answered as any other, and refreshes nothing; measured).
func beatIsFor(beat *wire.Beat, k serviceKey) bool {
	group, name, ok := strings.Cut(beat.Service, wire.GroupSeparator)
	if !ok {
		group, name = wire.DefaultGroup, beat.Service
	}
	return group == k.group && name == k.name
}

// registerBeat registers the instance a full beat tells of: always enabled and healthy.
func (s *Server) registerBeat(k serviceKey, at overlayKey, beat *wire.Beat) error {
	in := &instance{
		endpoint:  at.endpoint,
		cluster:   at.cluster,
		weight:    beat.Weight,
		healthy:   true,
		enabled:   true,
		ephemeral: beat.Ephemeral,
		metadata:  beat.Metadata,
	}
	if err := in.legal(); err != nil {
		return err
	}
	return s.reg.register(k, in)
}
