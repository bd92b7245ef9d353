package targetsim

import (
	"slices"
	"time"
)

// Effect is what the simulator has for one external reference: Count of them, of which there should be one at most.
type Effect struct {
	Kind              string   `json:"kind"`
	ExternalReference string   `json:"external_reference"`
	Numbers           []string `json:"numbers"`
	Count             int      `json:"count"`  // documents or entries that exist and were not rejected
	Posted            int      `json:"posted"` // of these the entries that are posted (ledger)
	IDs               []string `json:"ids"`
}

// Summary is all effects at one moment.
type Summary struct {
	Now        time.Time `json:"now"`
	References int       `json:"references"` // external references with at least one effect
	Effects    int       `json:"effects"`
	Duplicates int       `json:"duplicates"` // effects above one for each reference; 0 if callers do everything right
	Requests   int       `json:"requests"`
	Items      []Effect  `json:"items"`
}

// Count is the number of effects for one external reference at both kinds together, at this moment of the simulator's
// clock.
func (s *Sim) Count(reference string) int {
	n := 0
	for _, e := range s.Effects(reference).Items {
		n += e.Count
	}
	return n
}

// Effects lists what there is at this moment, for one external reference or, if it is empty, for all.
func (s *Sim) Effects(reference string) Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	sum := Summary{Now: now, Requests: len(s.state.requests), Items: []Effect{}}
	at := map[kindReference]int{}
	for _, t := range s.state.things {
		if reference != "" && t.ExternalReference != reference || !t.counts(now) {
			continue
		}
		id := kindReference{t.Kind, t.ExternalReference}
		i, ok := at[id]
		if !ok {
			i = len(sum.Items)
			at[id] = i
			sum.Items = append(sum.Items, Effect{Kind: t.Kind, ExternalReference: t.ExternalReference})
		}
		sum.Items[i].add(t)
	}
	sum.References = len(sum.Items)
	for _, e := range sum.Items {
		sum.Effects += e.Count
		sum.Duplicates += e.Count - 1
	}
	return sum
}

func (e *Effect) add(t *thing) {
	e.Count++
	e.IDs = append(e.IDs, t.ID)
	if t.posted {
		e.Posted++
	}
	if !slices.Contains(e.Numbers, t.Number) {
		e.Numbers = append(e.Numbers, t.Number)
	}
}

// Requests lists the requests for one external reference or, if it is empty, all, in the order in which they came.
func (s *Sim) Requests(reference string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []Request{}
	for _, r := range s.state.requests {
		if reference == "" || r.ExternalReference == reference {
			found = append(found, r)
		}
	}
	return found
}
