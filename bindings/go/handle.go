package esker

import "sync/atomic"

// handle guards an object of the C library, which must not be freed while a call uses it. Calls count themselves in and out;
// closing refuses further calls, and the object is freed when the last call has left. So nothing waits for a lock, and a
// program that closes a store while others use it gets errors, not crashes.
//
// A call pays two atomic additions to one word, which many cores that use one handle share. Goroutines that have a handle
// each (DB.OpenKeyspace) do not share it.
type handle struct {
	state atomic.Int64 // how many calls are under way, and the two bits below
	free  func()       // runs once, when nothing uses the object any more
	gone  chan struct{}
}

const (
	closing = 1 << 62
	freed   = 1 << 61
)

func newHandle(free func()) *handle { return &handle{free: free, gone: make(chan struct{})} }

// enter says whether the object may be used until leave.
func (h *handle) enter() bool {
	if h.state.Add(1)&closing != 0 {
		h.leave()
		return false
	}
	return true
}

func (h *handle) leave() {
	if h.state.Add(-1) == closing {
		h.freeOnce()
	}
}

// close refuses further calls. It does not wait for those under way: whoever wants to waits for gone.
func (h *handle) close() {
	for {
		state := h.state.Load()
		if state&closing != 0 {
			return
		}
		if h.state.CompareAndSwap(state, state|closing) {
			if state == 0 {
				h.freeOnce()
			}
			return
		}
	}
}

// A call that is refused counts itself in and out too, so zero may be reached more than once.
func (h *handle) freeOnce() {
	if h.state.CompareAndSwap(closing, closing|freed) {
		h.free()
		close(h.gone)
	}
}
