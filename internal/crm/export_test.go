package crm

// WaitingToEnd counts the attempts that wait for a transaction to write their outcomes in.
func WaitingToEnd(d *Deliverer) int {
	d.ends.mu.Lock()
	defer d.ends.mu.Unlock()
	return len(d.ends.waiting)
}
