package crm

import (
	"context"
	"sync"
)

// WaitingToBegin counts the deliveries that wait for a transaction to begin their attempts in.
func WaitingToBegin(d *Deliverer) int {
	d.begins.mu.Lock()
	defer d.begins.mu.Unlock()
	return len(d.begins.waiting)
}

// HoldBeginning holds the first transaction in which attempts begin until release, before it has done anything. held is closed
// when it is there. To be called before the first delivery.
func HoldBeginning(d *Deliverer) (held <-chan struct{}, release func()) {
	begin, at, end := d.begins.do, make(chan struct{}), make(chan struct{})
	var first sync.Once
	d.begins.do = func(ctx context.Context, group []*beginning) {
		first.Do(func() {
			close(at)
			<-end
		})
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), togetherTime) // what it was held for does not count
		defer cancel()
		begin(ctx, group)
	}
	return at, func() { close(end) }
}

// WaitingToEnd counts the attempts that wait for a transaction to write their outcomes in.
func WaitingToEnd(d *Deliverer) int {
	d.ends.mu.Lock()
	defer d.ends.mu.Unlock()
	return len(d.ends.waiting)
}

// Keepable is what is kept of the ERP's words.
func Keepable(text, token string) string { return keepable(text, token) }
