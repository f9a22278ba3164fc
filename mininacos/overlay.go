package mininacos

import (
	"time"

	"github.com/nacos-naming/nacos/internal/wire"
)

// overlayKey names what an overlay lies over. Other than instances, overlays differ by cluster (Nacos: metadataId).
type overlayKey struct {
	endpoint
	cluster string
}

// overlay is what PUT /instance sets. It lies over what the instance registers with, now and later: weight and enabled
// replace the registered ones, metadata is merged over the registered set, key by key. A PUT replaces the overlay as a whole
// by its own parameters and their defaults. It outlives its instance for about a minute. Measured on 2.3.2, see
// TestS6_OverlayTimeline.
type overlay struct {
	weight   float64
	enabled  bool
	metadata wire.Metadata
	until    time.Time // when it goes; zero while its instance is registered, or was never
}

// overlayLocked is the overlay at that key, nil if there is none. It drops one that has expired.
func (r *registry) overlayLocked(k serviceKey, at overlayKey) *overlay {
	byKey := r.overlays[k]
	o := byKey[at]
	if o == nil || o.until.IsZero() || time.Now().Before(o.until) {
		return o
	}
	delete(byKey, at)
	if len(byKey) == 0 {
		delete(r.overlays, k)
	}
	return nil
}

// merge lays over over base.
func merge(base, over wire.Metadata) wire.Metadata {
	if len(over) == 0 {
		return base
	}
	if len(base) == 0 {
		return over
	}
	out := make(wire.Metadata, 0, len(base)+len(over))
	for len(base) > 0 && len(over) > 0 {
		switch b, o := base[0], over[0]; {
		case b.Key < o.Key:
			out, base = append(out, b), base[1:]
		case b.Key > o.Key:
			out, over = append(out, o), over[1:]
		default:
			out, base, over = append(out, o), base[1:], over[1:]
		}
	}
	return append(append(out, base...), over...)
}
