package mininacos

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"
)

// nextRound is the first of first, first+every, ... after now.
func nextRound(first time.Time, every time.Duration, now time.Time) time.Time {
	if now.Before(first) {
		return first
	}
	return first.Add((now.Sub(first)/every + 1) * every)
}

// clean removes services that have been empty for long enough, with their tasks, and overlays nobody will see again; both
// once a minute, as 2.x does. It is not scheduled while there is no service.
func (r *registry) clean(context.Context) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for ns, services := range r.names {
		kept := slices.DeleteFunc(services, func(svc *service) bool {
			if len(svc.instances) > 0 || now.Sub(svc.updated) < emptyAfter {
				return false
			}
			svc.stopLocked()
			delete(r.services, svc.key)
			r.log.Info("empty service removed", zap.String("namespace", svc.key.namespace), zap.String("service", svc.grouped))
			return true
		})
		if len(kept) == 0 {
			delete(r.names, ns)
		} else {
			r.names[ns] = kept
		}
	}
	for k, byKey := range r.overlays {
		for at := range byKey {
			r.overlayLocked(k, at) // drops it when expired
		}
	}
	if len(r.services) == 0 {
		return time.Time{} // the next service created schedules it again
	}
	return nextRound(r.started.Add(cleanDelay), cleanInterval, now)
}
