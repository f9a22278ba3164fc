package nacos

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The main job in one test: register, look up, subscribe, beat, shut down.
func TestRegisterLookUpSubscribeShutDown(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		provider, consumer := w.client(), w.client()
		in := NewInstance("10.9.0.1", 8080)
		in.Metadata = NewMetadata(map[string]string{"version": "1.2"})
		reg := w.register(provider, "orders", in)
		assert.Equal(w, StateLive, reg.State())

		one, err := consumer.SelectOneHealthyInstance(w.ctx, "orders")
		require.NoError(w, err)
		assert.Equal(w, "10.9.0.1:8080", one.Addr())
		assert.Equal(w, "1.2", one.Metadata.Get("version"))

		var events record
		_, err = consumer.Subscribe("orders", events.on)
		require.NoError(w, err)
		time.Sleep(2 * time.Minute)
		require.Len(w, events.all(), 1, "beats keep the instance as it is")
		assert.True(w, events.all()[0].Initial)
		w.expect(w.server(), "orders", "10.9.0.1:8080")

		require.NoError(w, provider.Shutdown(w.ctx))
		w.expect(w.server(), "orders")
		assert.Equal(w, StateGone, reg.State())
		time.Sleep(11 * time.Second)
		require.Len(w, events.all(), 2)
		assert.Len(w, events.all()[1].Removed, 1)

		_, err = consumer.SelectOneHealthyInstance(w.ctx, "orders")
		var none *NoInstanceError
		require.True(w, errors.As(err, &none), "%v", err)
		assert.Zero(w, none.Total)
		_, err = provider.GetAllInstances(w.ctx, "orders")
		assert.ErrorIs(w, err, ErrClosed)
	})
}
