package invoice

import "slices"

// take takes the next group: one member of each tenant in turn, then a second of each and so on, so that a tenant with a
// thousand waiting takes the room that others leave. It is empty if nobody can go. A slow tenant's group is its own.
func (b *Batcher) take() (group []*waiter) {
	lanes := b.takeTurns()
	candidates := make([][]*waiter, len(lanes))
	for i, l := range lanes {
		candidates[i] = l.next()
	}
	bytes := 0
	for i, more := 0, true; more && len(group) < maxGroup; i++ {
		more = false
		for _, next := range candidates {
			if i >= len(next) || len(group) == maxGroup {
				continue
			}
			w := next[i]
			if bytes += len(w.m.canonical); bytes > maxGroupBytes && len(group) > 0 {
				return b.taken(group)
			}
			group, more = append(group, w), true
		}
	}
	return b.taken(group)
}

// takeTurns are the lanes whose turn it is: all that can go with the first that can go.
func (b *Batcher) takeTurns() (lanes []*lane) {
	b.turns = slices.DeleteFunc(b.turns, func(l *lane) bool {
		l.inTurns = len(l.waiting) > 0
		return !l.inTurns
	})
	for _, l := range b.turns {
		switch {
		case l.atWork || l.closed:
		case len(lanes) == 0 && l.slow && len(l.next()) > 0:
			return []*lane{l}
		case !l.slow && len(lanes) < maxGroup:
			lanes = append(lanes, l)
		}
	}
	return lanes
}

// next are the waiting members that can go together in one transaction, and behind nobody who is set aside.
func (l *lane) next() (can []*waiter) {
	// A look at more than this many would find few more in one order's queue, and costs each group.
	waiting := l.waiting[:min(len(l.waiting), 4*maxGroup)]
	var before apartness
	for _, w := range l.aside {
		before.add(w.m)
	}
	for _, w := range waiting {
		if before.add(w.m) && len(can) < maxGroup {
			can = append(can, w)
		}
	}
	return can
}

// taken marks a group as taken and sends the lanes that had their turn to the end.
func (b *Batcher) taken(group []*waiter) []*waiter {
	if len(group) == 0 {
		return nil
	}
	served := map[*lane]bool{}
	for _, w := range group {
		w.state = stateTaken
		w.lane.atWork = true
		served[w.lane] = true
	}
	for l := range served {
		l.waiting = slices.DeleteFunc(l.waiting, func(w *waiter) bool { return w.state == stateTaken })
	}
	var later []*lane
	b.turns = slices.DeleteFunc(b.turns, func(l *lane) bool {
		if served[l] && len(l.waiting) > 0 {
			later = append(later, l)
		}
		l.inTurns = len(l.waiting) > 0
		return served[l]
	})
	b.turns = append(b.turns, later...)
	return group
}
