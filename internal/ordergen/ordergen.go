// Package ordergen makes up orders that are plausible and obviously not real: for the demo, for tests and for load.
// The same options and number always give the same order, on every machine.
package ordergen

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"invoicebridge/internal/crm"
)

// Mix is what kind of business the orders come from.
type Mix string

// The mixes.
const (
	// MixShop is a web shop: small orders of consumers in the euro area, one final invoice each.
	MixShop Mix = "shop"
	// MixCRM is a company selling to companies: several currencies and VAT categories, advances, parts and finals.
	MixCRM Mix = "crm"
)

// Options say which orders are made. Zero values but Start are usable.
type Options struct {
	Seed   uint64
	Mix    Mix       // default MixCRM
	Source string    // default "generated"
	Prefix string    // of order ids; default "G<seed>-"
	Start  time.Time // the date of the first order
	PerDay int       // orders a day, default 25
}

// Generator makes orders. It holds no state and is safe for concurrent use.
type Generator struct{ o Options }

// New checks the options.
func New(o Options) (*Generator, error) {
	switch o.Mix {
	case "":
		o.Mix = MixCRM
	case MixShop, MixCRM:
	default:
		return nil, fmt.Errorf("unknown mix %q: shop and crm are known", o.Mix)
	}
	if o.Start.IsZero() {
		return nil, fmt.Errorf("the date of the first order is missing")
	}
	if o.Source == "" {
		o.Source = "generated"
	}
	if o.Prefix == "" {
		o.Prefix = fmt.Sprintf("G%d-", o.Seed)
	}
	if o.PerDay <= 0 {
		o.PerDay = 25
	}
	return &Generator{o}, nil
}

// Orders gives the first count orders.
func (g *Generator) Orders(count int) iter.Seq[crm.Order] {
	return func(yield func(crm.Order) bool) {
		for n := 1; n <= count; n++ {
			if !yield(g.Order(n)) {
				return
			}
		}
	}
}

// Order gives the n-th order, counted from 1. The ERP accepts every invoice of it, if it is sent in the order's own
// order and nothing else was invoiced for it.
func (g *Generator) Order(n int) crm.Order {
	m := maker{Rand: rand.New(rand.NewPCG(g.o.Seed, uint64(n))), number: n}
	m.id = fmt.Sprintf("%s%06d", g.o.Prefix, n)
	m.date = g.o.Start.AddDate(0, 0, (n-1)/g.o.PerDay)
	var o crm.Order
	if g.o.Mix == MixShop {
		o = m.shopOrder()
	} else {
		o = m.crmOrder()
	}
	o.Source, o.Order = g.o.Source, m.id
	return o
}

// maker makes one order.
type maker struct {
	*rand.Rand
	number int
	id     string
	date   time.Time
}

// oneIn is true once in n times.
func (m *maker) oneIn(n int) bool { return m.IntN(n) == 0 }

func pick[T any](m *maker, from []T) T { return from[m.IntN(len(from))] }

// day is the date so many days after the order's.
func (m *maker) day(after int) string { return m.date.AddDate(0, 0, after).Format(time.DateOnly) }
