package app

// QueueConfig is how a service reaches its queue, which is in its database. Its variables begin with the name of the
// service. By default it is reached as the rest, and wakes by LISTEN; that does not go through a pooler that hands one
// session to several clients in turn (docs/deployment.md).
type QueueConfig struct {
	DatabaseURL string `name:"queue-database-url" env:"QUEUE_DATABASE_URL" placeholder:"URL" help:"Another address of the same database, for the queue: the server itself, where the database's address leads through a pooler in transaction mode."`
	PollOnly    bool   `name:"queue-poll-only" env:"QUEUE_POLL_ONLY" help:"Look for jobs once a second instead of being told at once: for a queue behind a pooler in transaction mode."`
}

func (c QueueConfig) check(prefix string) error {
	if c.DatabaseURL == "" {
		return nil
	}
	return validateDatabaseURL(prefix+"QUEUE_DATABASE_URL", c.DatabaseURL)
}

// url is the queue's address, where the database has this one.
func (c QueueConfig) url(database string) string {
	if c.DatabaseURL != "" {
		return c.DatabaseURL
	}
	return database
}
